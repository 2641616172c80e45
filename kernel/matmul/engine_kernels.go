package matmul

import (
	"goatb/kernel"
	"goatb/tensor"
)

// productOf defines the float product of an engine.
func productOf(e *engine) *kernel.Kernel { return kernel.Define(e.floatDef("", false)) }

// accumulateOf defines the float product of an engine that is added to memory.
func accumulateOf(e *engine) *kernel.Kernel { return kernel.Define(e.floatDef("-accumulate", true)) }

func (e *engine) floatDef(suffix string, accumulate bool) kernel.Def[Params, tiling] {
	d := productDef("matmul/"+e.set.Name+suffix, func(p *kernel.Problem, a Params) (plan, error) {
		if err := wantAccumulator(p, accumulate); err != nil {
			return plan{}, err
		}
		s, ep, err := floatShape(p, a)
		if err != nil {
			return plan{}, err
		}
		return e.planned(p, &s, ep, false)
	}, e.share())
	d.InPlace, d.Pairs = accumulate, [][2]int{{0, Acc}}
	return d
}

// int8Of defines the int8 product of an engine.
func int8Of(e *engine) *kernel.Kernel {
	return kernel.Define(productDef("matmul/"+e.set.Name, func(p *kernel.Problem, a Params) (plan, error) {
		s, ep, err := int8Shape(p, a)
		if err != nil {
			return plan{}, err
		}
		return e.planned(p, &s, ep, false)
	}, e.share()))
}

// partialOf defines the partial sums of an engine.
func partialOf(e *engine) *kernel.Kernel {
	return kernel.Define(productDef("matmul/"+e.set.Name+"-partial", func(p *kernel.Problem, a Params) (plan, error) {
		sum := sumType(e.word)
		s, err := partialShape(p, a, sum)
		if err != nil {
			return plan{}, err
		}
		return e.planned(p, &s, epilogue{Out: sum}, true)
	}, e.share()))
}

// planned plans what the engine can do.
func (e *engine) planned(p *kernel.Problem, s *shape, ep epilogue, split bool) (plan, error) {
	if err := e.wantTypes(s); err != nil {
		return plan{}, err
	}
	if err := e.refusal(); err != nil {
		return plan{}, err
	}
	l := e.plan(p, s, split)
	l.Ep = ep
	return l, nil
}

// engineKernels returns the kernels that product makes for each engine, of int8
// or of float words.
func engineKernels(int8 bool, product func(e *engine) *kernel.Kernel) (out kernel.Table) {
	for i := range engines {
		if e := &engines[i]; int8 == (e.word == tensor.Int8) {
			out = append(out, product(e))
		}
	}
	return out
}

// copyRows stores the sums of columns [j, j+n) of an item of Partial.
func copyRows[S float32 | int32](out []S, t *tiling, p *place, j, n int64, sums []S, stride int64) {
	at, row := t.output(p)
	for r := range p.m {
		copy(out[at+j+r*row:][:n], sums[r*stride:])
	}
}
