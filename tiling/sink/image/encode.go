package image

import (
	"goatb/status"
	"goatb/tensor"
)

// Published are the addresses of a context that tasks name in their arguments.
type Published struct{ Type, Context, Key, Data, BlockDim Address }

// Published returns the addresses in a context at base.
func (l *Layout) Published(base Address) Published {
	return Published{base.At(l.TypeAt), base.At(l.ContextAt), base.At(l.KeyAt()), base.At(DataAt), base.At(l.BlockDimAt())}
}

// Words of the kernel context.
const (
	contextInputs  = 0
	contextOutputs = 8
	contextInfo    = 16
	contextName    = 24
	contextType    = 32
	contextTensors = 40 // inputs and outputs that are tensors, u32 each
)

// Encode writes the context of s to dst, whose address on the device is base: a
// multiple of BaseAlign. read are the addresses of the tensors of the inputs
// whose values are read (Args.TensorAt), in order and without absent ones, and
// platform is that of the platform information. Errors: ErrInternal for a dst or
// read of another size and a base that is not aligned, ErrInvalidTensorAddr for
// nil addresses.
func (l *Layout) Encode(dst []byte, base Address, s *Spec, read []Address, platform Address) error {
	switch {
	case int64(len(dst)) != l.Size || len(read) != l.Read:
		return status.Errorf(status.ErrInternal, "tiling context: want %d bytes and %d read tensors, got %d and %d", l.Size, l.Read, len(dst), len(read))
	case base == 0 || base%BaseAlign != 0:
		return status.Errorf(status.ErrInternal, "tiling context: want it aligned to %d bytes, got %#x", BaseAlign, uint64(base))
	case platform == 0:
		return status.Errorf(status.ErrInvalidTensorAddr, "tiling context: want platform information, got none")
	}
	clear(dst)
	le.PutUint64(dst, uint64(l.Data))
	le.PutUint64(dst[16:], uint64(base.At(DataAt)))
	if l.DumpAt > 0 {
		le.PutUint64(dst[l.DumpAt:], s.DumpIndex)
	}
	le.PutUint64(dst[l.VectorAt:], MaxWorkspaces)
	le.PutUint64(dst[l.VectorAt+VectorHeaderBytes-wordBytes:], uint64(base.At(l.VectorAt+VectorHeaderBytes)))
	copy(dst[l.TypeAt:], s.Type)
	copy(dst[l.NameAt:], s.Name)
	putInfo(dst[l.InfoAt:l.InfoAt+l.info], s)
	l.putContext(dst, base)
	return l.putCells(dst, base, s, read, platform)
}

// putContext writes the kernel context and its table of cells.
func (l *Layout) putContext(dst []byte, base Address) {
	c := dst[l.ContextAt:]
	le.PutUint64(c[contextInputs:], uint64(l.Inputs+l.Outputs+extraInputs))
	le.PutUint64(c[contextOutputs:], numOutputs)
	le.PutUint64(c[contextInfo:], uint64(base.At(l.InfoAt)))
	le.PutUint64(c[contextName:], uint64(base.At(l.NameAt)))
	le.PutUint64(c[contextType:], uint64(base.At(l.TypeAt)))
	le.PutUint32(c[contextTensors:], uint32(l.Inputs))
	le.PutUint32(c[contextTensors+4:], uint32(l.Outputs))
	for i := range l.cells() {
		le.PutUint64(c[KernelContextBytes+wordBytes*i:], uint64(base.At(l.cellAt(i))))
	}
}

// putCells writes the tensors without data and the cells.
func (l *Layout) putCells(dst []byte, base Address, s *Spec, read []Address, platform Address) error {
	cell, at := 0, l.TensorsAt
	put := func(v uint64) {
		le.PutUint64(dst[l.cellAt(cell):], v)
		cell++
	}
	shapes := func(descs []tensor.Desc) {
		for i := range descs {
			if !descs[i].Empty() {
				putTensor(dst[at:], &descs[i], 0, 0)
				put(uint64(base.At(at)))
				at += TensorBytes
			}
		}
	}
	shapes(s.In)
	for i, a := range read {
		if a == 0 {
			return status.Errorf(status.ErrInvalidTensorAddr, "tiling context: want the tensor of read input %d, got none", i)
		}
		put(uint64(a))
	}
	shapes(s.Out)
	var deterministic uint64
	if s.Deterministic {
		deterministic = 1
	}
	// Compile information and tiling function are nil: a tiling on the device must
	// not use them.
	for _, v := range [extraInputs]uint64{0, uint64(platform), 0, deterministic, uint64(s.Level)} {
		put(v)
	}
	launch := s.Launch
	launch[tilingDataOut], launch[workspacesOut] = uint64(base), uint64(base.At(l.VectorAt))
	for _, v := range launch {
		put(v)
	}
	return nil
}

// DumpIndex decides about the index for the dump after an exception: it is
// written where the dump is on, the arguments of the kernel are described, and
// some of them has a size. Where it is on and something is missing, the warning
// says what; the model goes on without.
func DumpIndex(on, described bool, sizes []int64) (write bool, warning string) {
	switch {
	case !on:
		return false, ""
	case !described:
		return false, "exception dump: the kernel's arguments are not described"
	case len(sizes) == 0:
		return false, "exception dump: the kernel's arguments have no sizes"
	}
	return true, ""
}
