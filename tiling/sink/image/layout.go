package image

// Sizes of the parts of a context, in bytes.
const (
	// DataHeaderBytes holds capacity, size and address of the tiling data.
	DataHeaderBytes = 64
	// VectorHeaderBytes holds capacity and size of the workspace vector, and the
	// address of its elements.
	VectorHeaderBytes = 64
	// MaxWorkspaces is the capacity of the workspace vector.
	MaxWorkspaces = 16
	// KernelContextBytes holds the numbers of cells and the addresses of what
	// every tiling function reads.
	KernelContextBytes = 48
	// CellBytes is a cell, CellAlign its alignment.
	CellBytes = 16
	CellAlign = 128

	// DataAt is where the tiling data begin.
	DataAt = DataHeaderBytes

	wordBytes = 8
	// extraInputs are the inputs of a tiling function behind its tensors: compile
	// information, platform, tiling function, deterministic, level.
	extraInputs = 5
	// countedExtra is how many of them the published size counts.
	countedExtra = 4
	// BaseAlign is the alignment that a context needs.
	BaseAlign = CellAlign
)

// Layout says where the parts of a context lie, in bytes from its start.
type Layout struct {
	// Data is the size of the tiling data, DumpAt where the index for the dump
	// lies behind them, 0 for none.
	Data, DumpAt int64
	// VectorAt is the workspace vector, RegionAt the context region.
	VectorAt, RegionAt int64
	// TensorsAt is the first tensor without data, TypeAt and NameAt are the names,
	// InfoAt is the compute node info, ContextAt the kernel context and CellsAt
	// the first cell.
	TensorsAt, TypeAt, NameAt, InfoAt, ContextAt, CellsAt int64
	// Size is the whole.
	Size int64
	// Inputs and Outputs count the connected tensors, Read the connected inputs
	// whose values are read.
	Inputs, Outputs, Read int
	info                  int64
}

// NewLayout lays a context out. Errors: ErrInvalidParam for a spec beyond the
// limits, among them 16 workspaces.
func NewLayout(s *Spec) (*Layout, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	l := &Layout{Data: s.room(), Read: connected(s.Val), Outputs: connected(s.Out), info: infoBytes(s)}
	l.Inputs = connected(s.In) + l.Read
	end := DataAt + l.Data
	if s.Dump {
		l.DumpAt = end
		end += wordBytes
	}
	l.VectorAt = end
	l.RegionAt = l.VectorAt + VectorHeaderBytes + MaxWorkspaces*wordBytes
	l.TensorsAt = l.RegionAt
	l.TypeAt = l.TensorsAt + int64(l.Inputs-l.Read+l.Outputs)*TensorBytes
	l.NameAt = l.TypeAt + int64(len(s.Type)) + 1
	l.InfoAt = align(l.NameAt+int64(len(s.Name))+1, 8)
	l.ContextAt = align(l.InfoAt+l.info, 8)
	l.CellsAt = align(l.ContextAt+KernelContextBytes+int64(l.cells())*wordBytes, CellAlign)
	l.Size = l.RegionAt + align(l.tiled(s), 8) + l.info
	return l, nil
}

// cells is the number of inputs and outputs of the tiling function.
func (l *Layout) cells() int { return l.Inputs + l.Outputs + extraInputs + numOutputs }

// tiled is the published size of a context region without its compute node
// info. It is more than the parts need.
func (l *Layout) tiled(s *Spec) int64 {
	io := int64(l.Inputs + l.Outputs)
	c := io + numOutputs + countedExtra
	return int64(len(s.Name)) + 1 + int64(len(s.Type)) + 1 + io*TensorBytes + KernelContextBytes + wordBytes*c + (CellBytes+2*CellAlign)*c
}

// cellAt is the place of cell i, inputs first.
func (l *Layout) cellAt(i int) int64 { return l.CellsAt + int64(i)*CellAlign }

// outputAt is the place of the cell of an output.
func (l *Layout) outputAt(o Output) int64 {
	return l.cellAt(l.Inputs + l.Outputs + extraInputs + int(o))
}

// KeyAt and BlockDimAt are where the tiling key, 8 bytes, and the block dim, 4
// bytes, of the tiling lie.
func (l *Layout) KeyAt() int64 { return l.outputAt(TilingKey) }

// BlockDimAt is described at KeyAt.
func (l *Layout) BlockDimAt() int64 { return l.outputAt(BlockDim) }
