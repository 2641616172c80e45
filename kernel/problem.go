package kernel

import (
	"slices"

	"goatb/device"
	"goatb/tensor"
)

// Machine is the part of a device that tilings depend on. It is comparable.
type Machine struct {
	// Cores is the number of blocks that run at once.
	Cores int
	// L1, L2 and L3 are cache sizes in bytes, L1 and L2 per core.
	L1, L2, L3 int64
	// Accelerator is as in device.Props: nothing is cut into several kernels for
	// want of blocks.
	Accelerator bool
}

// MachineOf returns the machine that a device's properties describe.
func MachineOf(p *device.Props) Machine {
	return Machine{Cores: max(p.Cores, 1), L1: p.L1, L2: p.L2, L3: p.L3, Accelerator: p.Accelerator}
}

// Options are the switches of the configuration that change tilings. It is
// comparable.
type Options struct {
	// ShuffleK lets matrix products walk K in a rotated order per block.
	// Results do not depend on it.
	ShuffleK bool
	// QuantMinNeg127 makes -127 the smallest int8 of a quantisation.
	QuantMinNeg127 bool
}

// Problem is what a kernel is asked to do: everything that its choice, its
// scratch bound and its tiling may depend on.
type Problem struct {
	// In and Out describe the operands; an absent optional operand has an
	// empty descriptor.
	In, Out []tensor.Desc
	// Val describes the tensors whose values the tiling reads.
	Val []tensor.Desc
	// Params is the kernel's parameter struct: comparable, without pointers; in
	// a problem that was read back from bytes a view of it, see
	// Kernel.ViewParams.
	Params any
	// Machine and Options say where and how it will run.
	Machine Machine
	Options Options
	// Values holds the host values of Val. It is nil until tiling: Supports,
	// Scratch and Tail must not read it.
	Values [][]int64
}

// Grid is the launch shape that a tiling chose.
type Grid struct {
	// Key is the tiling key: the variant that Run takes.
	Key uint64
	// Blocks is the block dim, at least 1.
	Blocks int
}

// Same reports whether two problems are equal in everything but Values: then
// a kernel treats them alike.
func (p *Problem) Same(q *Problem) bool {
	return p.Params == q.Params && p.Machine == q.Machine && p.Options == q.Options &&
		slices.Equal(p.In, q.In) && slices.Equal(p.Out, q.Out) && slices.Equal(p.Val, q.Val)
}
