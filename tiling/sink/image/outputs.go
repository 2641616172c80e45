package image

// Output is an output of a tiling function.
type Output uint8

// Outputs of a tiling function.
const (
	TilingKey Output = iota
	BlockDim
	AtomicClean
	tilingDataOut
	workspacesOut
	TilingCond
	ScheduleMode
	LocalMemory
	AICPUBlockDim
	SIMTBlockDim
	SIMTGridDim
	numOutputs = 11
)

// String names the output.
func (o Output) String() string {
	return [...]string{
		"tiling_key", "block_dim", "atomic_clean", "tiling_data", "workspaces", "tiling_cond", "schedule_mode", "local_memory",
		"aicpu_block_dim", "simt_block_dim", "simt_grid_dim",
	}[o%numOutputs]
}

// ignored are the outputs that a tiling on the device cannot change: the launch
// keeps the values that the tiling on the host left.
var ignored = [...]Output{AtomicClean, TilingCond, ScheduleMode, LocalMemory, AICPUBlockDim, SIMTBlockDim, SIMTGridDim}

// Outputs are the values of the outputs that fit a cell; those of tiling data
// and workspaces are not used.
type Outputs [numOutputs]uint64
