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
	// PackFirst is Pack, which fills the temporary, and a packed Product.
	PackFirst
)

const (
	// maxPartialBytes and maxPackedBytes bound the temporaries.
	maxPartialBytes = 16 << 20
	maxPackedBytes  = 256 << 20
	// worthwhile is the share of the time that two kernels may take of one
	// kernel's before they are preferred.
	worthwhile = 0.95
)

// Choose returns the strategy for a whole product, a problem of Product whose W
// is not packed, and the temporary between the two kernels. The estimates that
// it compares count what each strategy really does on the machine. Errors are
// those of shapes that no kernel takes.
func Choose(p *kernel.Problem, a Params) (Strategy, tensor.Desc, error) {
	s, err := shapeOf(p, a)
	if err != nil {
		return Direct, tensor.Desc{}, err
	}
	direct := newPlan(p, &s, false)
	best, strategy, temp := direct.nanos*worthwhile, Direct, tensor.Desc{}
	if d := s.partialDesc(sumType(s.x.DType)); d.Dim(0) > 1 && d.Bytes() > 0 && d.Bytes() <= maxPartialBytes {
		split := newPlan(p, &s, true)
		if nanos := split.nanos + 2*float64(d.Bytes())*nanosPerByte + nanosPerLaunch; nanos < best {
			best, strategy, temp = nanos, SplitK, d
		}
	}
	d := packedDesc(s.weightBatches(), s.n, s.k)
	if direct.grid.Key == keyPanels && s.x.DType != tensor.Int8 && d.Bytes() > 0 && d.Bytes() <= maxPackedBytes {
		if nanos := packFirstNanos(p, s, &d); nanos < best {
			strategy, temp = PackFirst, d
		}
	}
	return strategy, temp, nil
}

// packFirstNanos estimates Pack and a packed product.
func packFirstNanos(p *kernel.Problem, s shape, packed *tensor.Desc) float64 {
	s.w = matrix{Batch: s.w.Batch, Lead: s.k * panelWidth, Block: panelWidth, DType: tensor.Float32}
	l := newPlan(p, &s, false)
	pack := float64(packed.Numel()) * (nanosPerPacked + 8*nanosPerByte)
	return l.nanos + pack/float64(max(p.Machine.Cores, 1)) + nanosPerLaunch
}

// weightBatches returns the number of different weight matrices.
func (s *shape) weightBatches() int64 {
	if s.w.Batch == 0 {
		return 1
	}
	return s.batch
}
