package optimal

import (
	"slices"
	"time"

	"goatb/status"
)

// Options bound a search. The zero Options searches until the smallest arena is
// proven, which may take forever.
type Options struct {
	// Below is the arena of a plan that is known, in bytes: only smaller plans
	// are looked for. 0 stands for none.
	Below int64
	// Enough is an arena in bytes that is good enough: the search ends with the
	// first plan that is no larger.
	Enough int64
	// Nodes bounds the buffers that are placed, taken back ones included; 0 is no
	// bound. Equal bounds give equal results with one thread.
	Nodes int64
	// Deadline ends the search; the zero time is no bound.
	Deadline time.Time
	// Threads is the number of searches at a time. 0 and 1 search in the caller's
	// goroutine. With more, which of several plans is found may differ from run
	// to run.
	Threads int
}

// Result is what a search found.
type Result struct {
	// Offsets holds the offset in bytes of each buffer, nil when no plan smaller
	// than Options.Below was found. It belongs to the solver and is overwritten
	// by its next Solve.
	Offsets []int64
	// Arena is the number of bytes that the plan takes, or Options.Below.
	Arena int64
	// Bound is proven: no plan takes fewer bytes. What takes Bound bytes is
	// optimal.
	Bound int64
	// Nodes counts the buffers that were placed, taken back ones included.
	Nodes int64
	// Order names the order of the search that found the plan, such as "exact
	// life-area".
	Order string
}

// Solver searches for plans. The zero Solver is ready. It keeps its memory from
// problem to problem: with one thread, solving anew allocates nothing once it
// has seen a problem as large. A Solver belongs to one goroutine.
type Solver struct {
	problem
	portfolio
	best    []int64 // units
	offsets []int64 // bytes
}

// Solve looks for a plan of the buffers, at most BuffersMax, in an arena as
// small as possible. Sections count from 0 to sections-1; any sections do that
// tell which buffers live together, the fewer the better. The best are the
// locally largest sets of buffers that live at one time.
//
// Errors: ErrInvalidParam names the first buffer with wrong sections, a size
// below 1, an alignment that is no power of two, or a fixed offset that is
// misaligned or negative; too many buffers. ErrOutOfDeviceMemory when sizes and
// alignments add up to more than 2^61 bytes, or for a fixed offset beyond that.
// Fixed buffers that overlap are no error: then there is no plan.
func (s *Solver) Solve(buffers []Buffer, sections int, o Options) (Result, error) {
	if err := check(buffers, sections); err != nil {
		return Result{}, err
	}
	if len(buffers) == 0 {
		return Result{Offsets: s.offsets[:0]}, nil
	}
	s.load(buffers, sections)
	s.begin(&s.problem, o)
	d := descent{bound: s.bound(), best: s.stack() + 1, enough: o.Enough / s.unit}
	if o.Below > 0 {
		d.best = min(d.best, (o.Below+s.unit-1)/s.unit)
	}
	for round := 0; d.open() && !s.spent(); round++ {
		s.descend(&d, round)
	}
	r := Result{Arena: o.Below, Bound: d.bound * s.unit, Nodes: s.used, Order: s.winner}
	if d.found {
		s.offsets = grow(s.offsets, s.n)
		for i, at := range s.best {
			s.offsets[i] = at * s.unit
		}
		r.Offsets, r.Arena = s.offsets, d.best*s.unit
	}
	if d.bound >= d.best && r.Arena > 0 {
		r.Bound = r.Arena
	}
	return r, nil
}

// check refuses what cannot be searched.
func check(buffers []Buffer, sections int) error {
	if len(buffers) > BuffersMax {
		return status.Errorf(status.ErrInvalidParam, "want at most %d buffers, got %d", BuffersMax, len(buffers))
	}
	left := int64(roomMax)
	for i := range buffers {
		b := &buffers[i]
		align := max(b.Align, 1)
		switch {
		case b.Lower < 0 || b.Lower >= b.Upper || int(b.Upper) > sections:
			return status.Errorf(status.ErrInvalidParam, "buffer %d: want sections within 0 to %d, got %d to %d", i, sections, b.Lower, b.Upper)
		case b.Size < 1:
			return status.Errorf(status.ErrInvalidParam, "buffer %d: want a size of at least 1, got %d", i, b.Size)
		case b.Align < 0 || align&(align-1) != 0:
			return status.Errorf(status.ErrInvalidParam, "buffer %d: want an alignment that is a power of two, got %d", i, b.Align)
		case b.Fixed != Free && (b.Fixed < 0 || b.Fixed%align != 0):
			return status.Errorf(status.ErrInvalidParam, "buffer %d: want a fixed offset that is a multiple of %d, got %d", i, align, b.Fixed)
		}
		if b.Fixed > roomMax || align > left || b.Size > left-align {
			return status.Errorf(status.ErrOutOfDeviceMemory, "buffer %d: a fixed offset, or sizes and alignments together, above %d bytes", i, int64(roomMax))
		}
		left -= align + b.Size
	}
	return nil
}

// descent is what is known of the smallest arena, in units: no plan is smaller
// than bound, and only smaller ones than best are of use.
type descent struct {
	bound, best, enough int64
	found               bool // there is a plan of best
}

func (d *descent) goal() int64 { return max(d.bound, min(d.enough, d.best-1)) }

func (d *descent) open() bool { return d.best > d.bound && d.best > d.enough }

// descend tries arenas between the goal and the best, until one is found. What
// an attempt does not decide within its quota it leaves open: plans of a smaller
// arena may be easier to find, so every size is worth a try. The first round
// halves the way from the goal to the best. Later ones go up from the goal in
// ever smaller steps, with ever larger quotas.
func (s *Solver) descend(d *descent, round int) {
	low, step := d.goal()-1, (d.best-d.goal())>>round
	for limit := d.goal(); d.open() && limit < d.best && !s.spent(); {
		switch s.attempt(limit) {
		case found:
			s.keep(d)
			if round > 0 {
				return
			}
		case exhausted:
			d.bound = max(d.bound, limit+1)
			low = limit
		default:
			low = limit
		}
		if limit = low + max(step, 1); round == 0 {
			limit = max(low+1, (low+d.best)/2)
		}
	}
	s.quota *= quotaGrowth
}

// keep takes over the plan of the winning lane.
func (s *Solver) keep(d *descent) {
	s.best = grow(s.best, s.n)
	d.best, d.found = 0, true
	for i := range s.plan {
		s.best[i] = s.plan[i].least
		d.best = max(d.best, s.plan[i].least+s.plan[i].size)
	}
}

// grow returns a slice of n elements, s itself where it is large enough. The
// elements hold anything.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return slices.Grow(s[:0], n)[:n]
	}
	return s[:n]
}

// zeroed is grow with all elements zero.
func zeroed[T any](s []T, n int) []T {
	s = grow(s, n)
	clear(s)
	return s
}
