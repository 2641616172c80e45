package tune

import (
	"context"
	"slices"
	"time"

	"goatb/bench/roofline"
)

// Row is the result of a case.
type Row struct {
	Name, Shape, DType string
	Threads            int
	// Chosen tells what the tilings chose, Best what was the fastest of all Ways,
	// and Told what the tilings had to be told for it, "" where it is the choice.
	Chosen, Best, Told string
	Ways               int
	// Time is the median of the choice, BestTime that of the fastest way.
	Time, BestTime time.Duration
	// GFlops is the rate of the choice, 0 for a case that only moves data.
	GFlops float64
	// Ratio is the time of the fastest way divided by that of the choice, the
	// median over turns; 1 where they are one.
	Ratio float64
}

const (
	// Weights of cases with more than cached bytes rotate through more than caches
	// hold: in a model they come from memory. Smaller ones stay in caches.
	cached = 8 << 20
	// slow is how many times slower than the choice a way may be in its first
	// turns before it is given up.
	slow = 3
	// leastTurns and duelTurns are the numbers of turns that a search and the
	// comparison with the best way take whatever the time: others on the machine
	// take the median of a few turns wherever they want.
	leastTurns = 5
	duelTurns  = 21
	// doubtful is the ratio below which a comparison is made again, with confirm as
	// many times the time: helpers that were late once work alone for up to 160 ms,
	// and neighbours of the machine stay for a while too.
	doubtful = 0.95
	confirm  = 10
)

// Measure searches for the fastest way to run a case on a number of threads, and
// holds the choice against it. The search takes about budget for each way, and the
// comparison with the fastest one twice that: it does not count the turns by which
// that was found, which were kind to it. A choice that looks slow is compared once
// more, for longer.
func Measure(ctx context.Context, c *roofline.Case, threads int, budget time.Duration) (Row, error) {
	beyond := int64(0)
	if c.Bytes > cached {
		beyond = roofline.BeyondCaches
	}
	b, err := roofline.Open(c, threads, beyond)
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = b.Close() }() // frees: the result stands
	s := search{threads: threads, budget: budget}
	defer s.close()
	if err := s.open(ctx, b); err != nil {
		return Row{}, err
	}
	best, err := s.fastest(ctx)
	if err != nil {
		return Row{}, err
	}
	choice := s.ways[0]
	r := Row{
		Name: c.Name, Shape: c.Shape, DType: c.DType, Threads: threads, Ways: len(s.ways),
		Chosen: choice.String(), Best: best.String(), Told: best.told, Ratio: 1,
	}
	if best != choice {
		if r.Ratio, err = duel(ctx, choice, best, 2*budget); err != nil {
			return Row{}, err
		}
		if r.Ratio < doubtful {
			if r.Ratio, err = duel(ctx, choice, best, confirm*budget); err != nil {
				return Row{}, err
			}
		}
		if r.Ratio > 1 { // the turns of the search were kind to it
			best, r.Best, r.Told, r.Ratio = choice, r.Chosen, "", 1
		}
	}
	r.Time, r.BestTime = roofline.Median(choice.times), roofline.Median(best.times)
	if c.Peak != "" {
		r.GFlops = c.Flops / float64(r.Time.Nanoseconds())
	}
	return r, nil
}

// search runs a case in different ways, the choice of the tilings first.
type search struct {
	threads int
	budget  time.Duration
	ways    []*way
}

// open finds the different ways.
func (s *search) open(ctx context.Context, b *roofline.Bench) error {
	choice, err := newWay(ctx, "", b)
	if err != nil {
		return err
	}
	s.ways = []*way{choice}
	for _, q := range questions(s.threads, choice.launches) {
		w, err := q.open(ctx, b)
		if err != nil {
			continue // no kernel is left that takes the case
		}
		if slices.ContainsFunc(s.ways, w.same) {
			_ = w.bench.Close() // frees
			continue
		}
		s.ways = append(s.ways, w)
	}
	return nil
}

// close frees all ways but the first, which is the caller's.
func (s *search) close() {
	for i := len(s.ways) - 1; i > 0; i-- {
		_ = s.ways[i].bench.Close() // frees
	}
}

// fastest runs the ways in turns and returns the one with the least median.
func (s *search) fastest(ctx context.Context) (*way, error) {
	running := slices.Clone(s.ways)
	total := time.Duration(len(running)) * s.budget
	for start, turn := time.Now(), 0; turn < leastTurns || time.Since(start) < total; turn++ {
		for _, w := range running {
			if err := w.run(ctx); err != nil {
				return nil, err
			}
		}
		if turn == 1 {
			limit := slow * slices.Min(s.ways[0].times)
			running = slices.DeleteFunc(running, func(w *way) bool { return slices.Min(w.times) > limit })
		}
	}
	best := s.ways[0]
	for _, w := range running {
		if roofline.Median(w.times) < roofline.Median(best.times) {
			best = w
		}
	}
	return best, nil
}

// duel runs two ways in turns and returns the median of the second one's time
// divided by the first one's. Their times are those of the duel alone afterwards.
func duel(ctx context.Context, a, b *way, budget time.Duration) (float64, error) {
	a.times, b.times = nil, nil
	var ratios []float64
	for start := time.Now(); len(ratios) < duelTurns || time.Since(start) < budget; {
		if err := a.run(ctx); err != nil {
			return 0, err
		}
		if err := b.run(ctx); err != nil {
			return 0, err
		}
		ratios = append(ratios, float64(b.times[len(ratios)])/float64(a.times[len(ratios)]))
	}
	return roofline.Median(ratios), nil
}
