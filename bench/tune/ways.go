package tune

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"goatb/atb"
	"goatb/bench/roofline"
	"goatb/operation"
)

// way is one way to run a case.
type way struct {
	// told says what the tilings were told, "" for the truth.
	told     string
	bench    *roofline.Bench
	launches []operation.Launched
	times    []time.Duration
}

// asked is what a search tells tilings: other caches or cores, and kernels that they
// are not to use.
type asked struct {
	cores, l2, l3 float64 // factors
	without       []string
}

// cacheFactors are the factors by which caches differ from the machine's, and
// coreFactors those by which there are more cores: then work is cut into more blocks,
// or K where that is all there is to cut.
var (
	cacheFactors = []float64{0.25, 0.5, 2, 4}
	coreFactors  = []float64{2, 4}
)

// questions lists what to ask on a machine with a number of cores, where the best
// kernels are those of chosen.
func questions(cores int, chosen []operation.Launched) (out []asked) {
	for n := 1; n < cores; n++ {
		out = append(out, asked{cores: float64(n) / float64(cores), l2: 1, l3: 1})
	}
	for _, f := range coreFactors {
		out = append(out, asked{cores: f, l2: 1, l3: 1})
	}
	for _, f := range cacheFactors {
		out = append(out, asked{cores: 1, l2: f, l3: 1}, asked{cores: 1, l2: 1, l3: f})
	}
	var without []string
	for _, l := range chosen {
		if name := "!" + l.Kernel.Name(); !slices.Contains(without, name) {
			without = append(without, name)
		}
	}
	return append(out, asked{cores: 1, l2: 1, l3: 1, without: without})
}

// String tells what is asked.
func (a asked) String() string {
	var parts []string
	for _, f := range []struct {
		name   string
		factor float64
	}{{"cores", a.cores}, {"L2", a.l2}, {"L3", a.l3}} {
		if f.factor != 1 {
			parts = append(parts, fmt.Sprintf("%s x%.3g", f.name, f.factor))
		}
	}
	return strings.Join(append(parts, a.without...), " ")
}

// open runs the case of a bench in the way that the tilings choose then.
func (a asked) open(ctx context.Context, b *roofline.Bench) (*way, error) {
	m := b.C.Lowering().Machine
	m.Cores = max(1, int(float64(m.Cores)*a.cores+0.5))
	m.L2, m.L3 = int64(float64(m.L2)*a.l2), int64(float64(m.L3)*a.l3)
	other, err := b.Beside(atb.WithMachine(m), atb.WithKernelFilter(strings.Join(a.without, ",")))
	if err != nil {
		return nil, err
	}
	return newWay(ctx, a.String(), other)
}

// newWay runs a bench once, so that its tilings are known.
func newWay(ctx context.Context, told string, b *roofline.Bench) (*way, error) {
	w := &way{told: told, bench: b}
	err := b.Run(ctx)
	if err == nil {
		w.launches, err = b.Launches()
	}
	return w, err
}

// same reports whether two ways do the same.
func (w *way) same(o *way) bool {
	return slices.EqualFunc(w.launches, o.launches, func(a, b operation.Launched) bool {
		return a.Kernel == b.Kernel && a.Grid == b.Grid && bytes.Equal(a.Tiling, b.Tiling)
	})
}

// run runs the way twice more and keeps the second time: what the way before left in
// caches, and whether its helpers sleep, is not this one's.
func (w *way) run(ctx context.Context) error {
	if err := w.bench.Run(ctx); err != nil {
		return err
	}
	start := time.Now()
	err := w.bench.Run(ctx)
	w.times = append(w.times, time.Since(start))
	return err
}

// String tells kernels, blocks and blocking.
func (w *way) String() string {
	var parts []string
	for _, l := range w.launches {
		s := fmt.Sprintf("%s, %d blocks", l.Kernel.Name(), l.Grid.Blocks)
		if text := l.Kernel.Explain(l.Tiling); text != "" {
			s += ", " + text
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}
