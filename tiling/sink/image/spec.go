package image

import (
	"math"

	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Spec is what the context of one operation is made from.
type Spec struct {
	// Name is the operation's place, Type the name of its tiling function.
	Name, Type string
	// In and Out describe the operands; an absent one has an empty descriptor.
	// Val describes the inputs whose values the tiling reads; they count as
	// inputs behind In.
	In, Val, Out []tensor.Desc
	// Params are the kernel's parameters, see kernel.Kernel.EncodeParams.
	Params  []byte
	Options kernel.Options
	// DataBytes is the operation's room for tiling data; below 0 it is not given
	// and DefaultDataBytes holds. 0 is legal: no data.
	DataBytes int64
	// Deterministic and Level ask for results that do not depend on scheduling.
	Deterministic bool
	Level         uint32
	// Workspaces bound the workspaces of any tiling.
	Workspaces []int64
	// Launch is what the kernel is launched with until the first update. Of what
	// a tiling on the device decides, only key and block dim reach the launch.
	Launch Outputs
	// Dump reserves 8 bytes at the end of the room for tiling data and stores
	// DumpIndex there, for the dump after an exception.
	Dump      bool
	DumpIndex uint64
}

// DefaultDataBytes is the room for tiling data where none is given.
const DefaultDataBytes = 16384

// Limits of a context.
const (
	maxData   = 1 << 30
	maxTensor = 1 << 12
	maxText   = 1 << 16
)

// FromKernel is the spec of a kernel's problem. Name and Type are set, as are
// operands, values, parameters, options, room for tiling data and workspace.
func FromKernel(name string, k *kernel.Kernel, p *kernel.Problem) (*Spec, error) {
	s := &Spec{
		Name: name, Type: k.Name(), In: p.In, Val: p.Val, Out: p.Out, Options: p.Options,
		Params: make([]byte, k.ParamSize()), DataBytes: int64(k.TilingSize(p)),
	}
	if err := k.EncodeParams(s.Params, p); err != nil {
		return nil, status.Place(err, status.ErrInternal, name, "load", k.Name())
	}
	if n := k.Scratch(p); n > 0 {
		s.Workspaces = []int64{n}
	}
	return s, nil
}

// check refuses what has no layout.
func (s *Spec) check() error {
	for _, n := range []struct {
		what       string
		got, limit int64
	}{
		{"bytes of tiling data", s.DataBytes, maxData},
		{"tensors", int64(len(s.In)) + int64(len(s.Val)) + int64(len(s.Out)), maxTensor},
		{"bytes of parameters", int64(len(s.Params)), maxText},
		{"bytes of names", int64(len(s.Name)) + int64(len(s.Type)), maxText},
		{"workspaces", int64(len(s.Workspaces)), MaxWorkspaces},
	} {
		if n.got > n.limit {
			return status.Errorf(status.ErrInvalidParam, "tiling context: want at most %d %s, got %d", n.limit, n.what, n.got)
		}
	}
	for i, n := range s.Workspaces {
		if n < 0 || n > math.MaxInt64-7 {
			return status.Errorf(status.ErrInvalidParam, "tiling context: workspace %d: got %d bytes", i, n)
		}
	}
	return nil
}

// room is the room for tiling data: a multiple of 8.
func (s *Spec) room() int64 {
	if s.DataBytes < 0 {
		return DefaultDataBytes
	}
	return align(s.DataBytes, 8)
}

// connected counts descriptors that are not absent.
func connected(descs []tensor.Desc) (n int) {
	for i := range descs {
		if !descs[i].Empty() {
			n++
		}
	}
	return n
}

func align(n, to int64) int64 { return (n + to - 1) / to * to }
