package sink

import "goatb/kernel"

// Fusion is what an operation says about super kernels, in which several
// operations are one launch.
type Fusion struct {
	// Scope names the super kernel that the operation is asked to be part of, ""
	// for none.
	Scope string
	// Supported says that the kernel can be part of one.
	Supported bool
	// LocalMemory is the kernel's local memory in bytes: one that has some runs
	// threads and cannot be fused.
	LocalMemory int64
	// EnsureReuse says that the operation's own binary must be reused, and
	// ReuseBinary that the super kernel reuses it.
	EnsureReuse, ReuseBinary bool
}

// KeptOut returns why the operation is not part of a super kernel, "" where it
// may be.
func (f *Fusion) KeptOut(r *Registration, m *Mark) string {
	switch {
	case r != nil && r.TileOn.Has(kernel.OnAICPU) && !m.Sunk && f.EnsureReuse:
		return "its binary must be reused and its tiling, which could run on the device, does not"
	case f.LocalMemory > 0:
		return "its kernel runs threads"
	case !f.Supported:
		return "its kernel does not support super kernels"
	}
	return ""
}

// FuseScopes clears the scope of every operation that is kept out of super
// kernels. With strict the scope stays, so that generating the super kernel
// fails and says why.
func FuseScopes(ops []Op, marks []Mark, strict bool) {
	for i := range ops {
		if f := &ops[i].Fusion; !strict && f.Scope != "" && f.KeptOut(ops[i].Registration, &marks[i]) != "" {
			f.Scope = ""
		}
	}
}
