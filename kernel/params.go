package kernel

import (
	"unsafe"

	"goatb/status"
)

// paramCodec moves the parameters of one kernel to bytes and back.
type paramCodec struct {
	size, align int
	encode      func(dst []byte, p *Problem) error
	view        func(p *Problem, src []byte)
}

// ParamSize returns the bytes of the kernel's parameters.
func (k *Kernel) ParamSize() int { return k.params.size }

// EncodeParams writes the parameters of p to dst, which has ParamSize bytes: in
// the processor's own layout, for a tiling on the device of the same process.
// Parameters of another kernel and a dst of another size are ErrInternal.
func (k *Kernel) EncodeParams(dst []byte, p *Problem) error {
	if len(dst) != k.params.size {
		return status.Errorf(status.ErrInternal, "parameters of %s: want %d bytes, got %d", k.name, k.params.size, len(dst))
	}
	return k.params.encode(dst, p)
}

// ViewParams makes p's parameters those that EncodeParams wrote to src, without
// a copy: p reads src for as long as it is used. A src that is too short or not
// aligned for the parameters is ErrInternal.
func (k *Kernel) ViewParams(p *Problem, src []byte) error {
	if len(src) < k.params.size {
		return status.Errorf(status.ErrInternal, "parameters of %s: want %d bytes, got %d", k.name, k.params.size, len(src))
	}
	if a := uintptr(unsafe.Pointer(unsafe.SliceData(src))); k.params.size > 0 && a%uintptr(k.params.align) != 0 {
		return status.Errorf(status.ErrInternal, "parameters of %s: want them aligned to %d bytes", k.name, k.params.align)
	}
	k.params.view(p, src)
	return nil
}

// paramsOf returns the parameters of p, which are a P or the view of one.
func paramsOf[P comparable](p *Problem) (P, bool) {
	if view, ok := p.Params.(*P); ok && view != nil {
		return *view, true
	}
	a, ok := p.Params.(P)
	return a, ok
}

// mustParams is paramsOf for a problem that Supports has taken.
func mustParams[P comparable](p *Problem) P {
	a, ok := paramsOf[P](p)
	if !ok {
		panic(wrongParams[P](p))
	}
	return a
}

func wrongParams[P comparable](p *Problem) error {
	return status.Errorf(status.ErrInternal, "want params %T, got %T", *new(P), p.Params)
}

func encodeParams[P comparable](gaps []gap) func(dst []byte, p *Problem) error {
	return func(dst []byte, p *Problem) error {
		a, ok := paramsOf[P](p)
		if !ok {
			return wrongParams[P](p)
		}
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(&a)), unsafe.Sizeof(a)))
		clearGaps(dst, gaps)
		return nil
	}
}

func viewParams[P comparable](p *Problem, src []byte) {
	if len(src) == 0 {
		p.Params = new(P)
		return
	}
	p.Params = (*P)(unsafe.Pointer(unsafe.SliceData(src)))
}
