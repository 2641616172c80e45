package matmul

import (
	"goatb/kernel"
	"goatb/tensor"
)

// Strategy says which kernels do a product best.
type Strategy uint8

// Strategies.
const (
	// Direct is Product alone.
	Direct Strategy = iota
	// SplitK is Partial, which fills the temporary, and Reduce.
	SplitK
)

const (
	// maxPartialBytes bounds the temporary.
	maxPartialBytes = 16 << 20
	// worthwhile is the share of the time that two kernels may take of one
	// kernel's before they are preferred.
	worthwhile = 0.95
)

// Choose returns the strategy for a whole product, a problem of Product, and the
// temporary between the two kernels. The estimates that it compares count what
// each strategy really does on the machine; the result of the product does not
// depend on the choice. Errors are those of shapes that no kernel takes.
func Choose(p *kernel.Problem, a Params) (Strategy, tensor.Desc, error) {
	s, err := shapeOf(p, a)
	if err != nil {
		return Direct, tensor.Desc{}, err
	}
	d := s.partialDesc(sumType(s.x.DType))
	if p.Machine.Accelerator || d.Dim(0) == 1 || d.Bytes() == 0 || d.Bytes() > maxPartialBytes {
		return Direct, tensor.Desc{}, nil
	}
	plan := newPlan
	if e := engineFor(s.x.DType); e != nil {
		plan = e.plan
	}
	direct, split := plan(p, &s, false), plan(p, &s, true)
	if split.nanos+2*float64(d.Bytes())*nanosPerByte+nanosPerLaunch < direct.nanos*worthwhile {
		return SplitK, d, nil
	}
	return Direct, tensor.Desc{}, nil
}

// weightBatches returns the number of different weight matrices.
func (s *shape) weightBatches() int64 {
	if s.w.Batch == 0 {
		return 1
	}
	return s.batch
}
