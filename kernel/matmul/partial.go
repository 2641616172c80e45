package matmul

import (
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

var partialGo = kernel.Define(partialDef("matmul/partial", tensor.Float32, shareFloat))

var partialInt8Go = kernel.Define(partialDef("matmul/partial-int8", tensor.Int32, shareInt8))

// partialDef defines a kernel that stores the sum of each chunk of K.
func partialDef(name string, sum tensor.DType, share func(*kernel.Args, int, int, *tiling, []int64) error) kernel.Def[Params, tiling] {
	return productDef(name, func(p *kernel.Problem, a Params) (plan, error) { return planPartial(p, a, sum) }, share)
}

// planPartial checks and plans the partial sums of a product.
func planPartial(p *kernel.Problem, a Params, sum tensor.DType) (plan, error) {
	s, err := partialShape(p, a, sum)
	if err != nil {
		return plan{}, err
	}
	l := newPlan(p, &s, true)
	l.Ep.Out = sum
	return l, nil
}

// partialShape checks the operands of partial sums.
func partialShape(p *kernel.Problem, a Params, sum tensor.DType) (shape, error) {
	s, err := shapeOf(p, a)
	if err != nil {
		return s, err
	}
	if err := wantAbsent(p, Bias, Scale, TokenScale, Acc); err != nil {
		return s, err
	}
	if sum == tensor.Int32 {
		err = s.wantInt8(p)
	} else {
		err = s.wantFloats(p)
	}
	if err != nil {
		return s, err
	}
	if want := s.partialDesc(sum); want.Bytes() == 0 || p.Out[0] != want {
		return s, status.Errorf(status.ErrInvalidParam, "want an output %s, got %s", &want, &p.Out[0])
	}
	return s, nil
}

// partialDesc describes Partial's output: [chunks, batch, m, n].
func (s *shape) partialDesc(sum tensor.DType) tensor.Desc {
	return tensor.Of(sum, ceilDiv(s.k, chunkOf(s.k)), s.batch, s.m, s.n)
}

// sumType is the type of the sums of a product.
func sumType(x tensor.DType) tensor.DType {
	if x == tensor.Int8 {
		return tensor.Int32
	}
	return tensor.Float32
}
