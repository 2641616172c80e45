package profile

// Group is a kind of kernel that is tiled and run at one price.
type Group uint8

// Groups.
const (
	// Vector is everything that is none of the others.
	Vector Group = iota
	// Norm is normalisations, softmax and activations, whose tilings look at
	// whole rows. They run at the price of Vector.
	Norm
	// Matmul is matrix products.
	Matmul
	// Attention is attention kernels.
	Attention

	// Groups is the number of groups.
	Groups
)

// String returns the group's name in parameters.
func (g Group) String() string { return [...]string{"vector", "norm", "matmul", "attention"}[g&3] }

// Costs is a profile as the simulator computes with it. Times are nanoseconds,
// rates bytes or flops per nanosecond, sizes bytes. The fields are the
// parameters that the table names.
type Costs struct {
	LaunchHost, LaunchPerKiB, WrapperHost, FrameworkHost float64
	LaunchToStart, TaskGap, TaskFetch                    float64
	QueueDepth, Prefetch                                 float64

	CopyHost, CopyLatency, CopyPinned, CopyPageable float64

	RecordHost, WaitHost, RecordDev, WaitDev      float64
	EventHost, QueryHost, SyncHost, AllocHost     float64
	ReplayHost, TaskUpdate                        float64
	SetupHost, PlanHost, LookupHost               float64
	Tiling, Fixed                                 [Groups]float64
	AICPUs, AICPUDispatch, AICPUFactor, TaskPatch float64

	Peak, PeakShare, Beta         float64
	Memory, MemoryShare, Capacity float64
	L2Size, L2Read, L2Write       float64
	Cores, CoreBuffer, CoreL1     float64
}

// Costs returns the parameters for computing, zeros of a nil or zero Profile.
func (p *Profile) Costs() Costs {
	var c Costs
	if p.Check() != nil {
		return c
	}
	for i := range table {
		*table[i].to(&c) = p.params[i].Value * scale(table[i].unit)
	}
	c.Fixed[Norm] = c.Fixed[Vector]
	return c
}
