package matmul

import (
	"slices"

	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
	"goatb/status"
	"goatb/tensor"
)

// engine multiplies packed rows of x with panels of w by one set of assembly
// loops.
type engine struct {
	set *gemm.Set
	// word is the type of the elements that make a word of packed rows and
	// panels; operands of the other types are converted to it.
	word tensor.DType
	// types lists the types of x and w.
	types []tensor.DType
}

// engines lists the engines of the program, best first.
var engines = makeEngines()

func makeEngines() (out []engine) {
	for i := range gemm.Sets() {
		e := engine{set: &gemm.Sets()[i]}
		switch e.set.Elem {
		case gemm.F32:
			e.word, e.types = tensor.Float32, []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}
		case gemm.BF16:
			e.word, e.types = tensor.BFloat16, []tensor.DType{tensor.BFloat16}
		case gemm.Int8:
			e.word, e.types = tensor.Int8, []tensor.DType{tensor.Int8}
		}
		out = append(out, e)
	}
	return out
}

// engineFor returns the engine that multiplies elements of type t now, nil when
// plain Go does.
func engineFor(t tensor.DType) *engine {
	for i := range engines {
		if e := &engines[i]; slices.Contains(e.types, t) && e.refusal() == nil {
			return e
		}
	}
	return nil
}

// refusal tells why the engine cannot run now.
func (e *engine) refusal() error {
	if want, have := e.set.Needs|e.set.Wants, cpu.Active(); !have.Has(want) {
		return status.Errorf(status.ErrInvalidParam, "want a processor with %s, have %s", want, have)
	}
	return nil
}

// wantTypes checks the element types of a product.
func (e *engine) wantTypes(s *shape) error {
	if s.x.DType != s.w.DType || !slices.Contains(e.types, s.x.DType) {
		return status.Errorf(status.ErrInvalidParam, "want X and W of one of the types %v, got %s and %s", e.types, s.x.DType, s.w.DType)
	}
	return nil
}

// step returns the elements of K in a word.
func (e *engine) step() int64 { return e.set.Elem.Step() }

// words returns the words that n elements of K take.
func (e *engine) words(n int64) int64 { return (n + e.step() - 1) / e.step() }

// inPlace reports whether runs of a matrix along K are words in memory.
func (e *engine) inPlace(m *matrix) bool { return m.DType == e.word && m.AlongK && m.Block == 0 }

// isPanels reports whether a matrix is made of the engine's own panels.
func (e *engine) isPanels(m *matrix) bool {
	return m.DType == e.word && m.Step == uint8(e.step()) && m.Block == gemm.PanelColumns && !m.AlongK
}

// mostRows is the number of rows of the largest tile of a product.
func (e *engine) mostRows(t *tiling) int64 {
	if narrow := e.narrow(&t.W); narrow != nil {
		return narrow.MaxRows()
	}
	return e.set.MaxRows()
}

// narrow returns the loops for a matrix in panels of 2-byte elements that are
// multiplied as f32, nil for any other.
func (e *engine) narrow(m *matrix) *gemm.Narrow {
	switch {
	case e.word != tensor.Float32 || m.AlongK || m.Block != gemm.PanelColumns:
	case m.DType == tensor.Float16:
		return &e.set.F16
	case m.DType == tensor.BFloat16:
		return &e.set.BF16
	}
	return nil
}
