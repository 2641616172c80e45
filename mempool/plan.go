package mempool

import (
	"slices"
	"time"

	"goatb/mempool/optimal"
	"goatb/status"
)

// DefaultAlign is the alignment of an item that asks for none, in bytes.
const DefaultAlign = 512

// Item is one buffer to place: Size bytes that are needed from node First to
// node Last, both inclusive, in the order in which nodes run. First is the
// first writer and Last the last reader. Nodes may have negative numbers, up to
// MaxNode either way. Last == First-1 is an item that is never live: like an
// item of 0 bytes it takes no room and may lie anywhere.
type Item struct {
	Size        int64
	First, Last int64
	// Align is the offset's alignment in bytes, a power of two; 0 stands for
	// the alignment of the options.
	Align int64
	// Fixed says that the item lies at Offset and nowhere else; Offset has no
	// meaning otherwise.
	Fixed  bool
	Offset int64
}

// Limits of items.
const (
	// MaxNode is the largest node number of an item, -MaxNode the smallest.
	MaxNode = 1 << 61
	// MaxAlign is the largest alignment in bytes.
	MaxAlign = 1 << 30
	// MaxArena bounds the sum of sizes and alignments, and the end of a fixed
	// item, in bytes.
	MaxArena = 1 << 61
)

// occupies reports whether the item takes room at all.
func (it *Item) occupies() bool { return it.Size > 0 && it.First <= it.Last }

// Options choose how a plan is made. The zero Options asks for type 0; see
// DefaultOptions.
type Options struct {
	Solver SolverType
	// Align is the alignment in bytes, a power of two, of items that ask for
	// none; 0 stands for DefaultAlign.
	Align int64
	// Capacity is an arena in bytes that is good enough: Optimal stops at the
	// first plan that is no larger. 0 asks for the smallest arena. A plan may be
	// larger than the capacity: compare Arena.
	Capacity int64
	// Nodes bounds the exact search of Optimal, in nodes of the search tree. A
	// negative number is no bound. 0 is no bound where there is a Deadline; else
	// it stands for a small one, see SearchWork. Equal bounds give equal plans.
	Nodes int64
	// Deadline bounds the time of the exact search; 0 is no bound. The best plan
	// so far is returned: it may differ from run to run.
	Deadline time.Duration
	// Threads is the number of searches at a time. 0 and 1 search in the caller's
	// goroutine; with more, plans of one problem may differ from run to run.
	Threads int
}

// SearchWork bounds the exact search where Options set no bound: the number of
// its nodes times the number of items, to which the time of a node is about
// proportional. It takes some ten milliseconds, and only where no heuristic meets
// the lower bound.
const SearchWork = 1 << 22

// DefaultOptions asks for the best plan, aligned to DefaultAlign.
func DefaultOptions() Options { return Options{Solver: Optimal, Align: DefaultAlign} }

// Result is a plan.
type Result struct {
	// Offsets holds the offset in bytes of each item. It belongs to the
	// planner and is overwritten by its next Plan: clone it to keep it.
	Offsets []int64
	// Arena is the number of bytes that hold all items. Sizes count rounded up
	// to the smallest alignment of all items, which costs nothing.
	Arena int64
	// LowerBound is a size that no arena can be smaller than: the largest total
	// of items live at one node, or the end of a fixed item.
	LowerBound int64
	// Optimal says that no smaller arena exists.
	Optimal bool
	// Method names what found the plan, such as "first-fit"; where independent
	// parts of the plan come from several methods, that of the largest part.
	Method string
	// Nodes counts the nodes of an exact search, 0 when there was none.
	Nodes int64
	// PeakAt is the first node at which the total of live items is largest; see
	// Live for who they are.
	PeakAt int64
}

// Planner lays out arenas. The zero Planner is ready. It keeps its memory from
// plan to plan: planning anew allocates nothing once it has seen a problem as
// large. A Planner belongs to one goroutine.
type Planner struct {
	problem
	gaps      gapFinder
	sky       skyline
	rows      rows
	replay    replayer
	loads     loadTree
	validator validator
	exact     optimal.Solver
	buffers   []optimal.Buffer

	orderer orderer
	order   []int32

	short      *Planner // of problems with fewer layers, made when one is met
	layerOrder []int32

	above      *Planner // of what lies above a floor, made when one is met
	aboveItems []Item
	floors     int // that this planner is above

	offsets   []int64 // of the items, in the caller's order
	try, best []int64 // offsets by the problem's numbers
}

// Plan places all items. Types 0 to 3 replay the items in node order through
// the online solver: a node first allocates what it writes, in item order, then
// frees what it reads last. Type Optimal is described in the package comment.
//
// Errors: ErrInvalidParam names the first item with a negative size, a lifetime
// that ends before it starts, an alignment that is no power of two or a fixed
// offset that is misaligned; two fixed items on each other; fixed items with
// types 0 to 3; an unknown type; negative options. ErrOutOfDeviceMemory when sizes add up to more
// than MaxArena.
func (p *Planner) Plan(items []Item, o Options) (Result, error) {
	if p == nil {
		return Result{}, errNoPlanner()
	}
	if int(o.Solver) >= SolverTypes {
		return Result{}, status.Errorf(status.ErrInvalidParam, "want a solver type of 0 to %d, got %s", SolverTypes-1, o.Solver)
	}
	if o.Capacity < 0 || o.Deadline < 0 || o.Threads < 0 {
		return Result{}, status.Errorf(status.ErrInvalidParam, "want a capacity, a deadline and threads of at least 0, got %d, %v and %d", o.Capacity, o.Deadline, o.Threads)
	}
	if err := p.load(items, o); err != nil {
		return Result{}, err
	}
	if p.anyFixed {
		if err := p.validator.fixed(items); err != nil {
			return Result{}, err
		}
	}
	p.try, p.best = grow(p.try, p.n()), grow(p.best, p.n())
	out := Result{LowerBound: p.bound, PeakAt: p.peakAt(), Method: o.Solver.String()}
	if o.Solver == Optimal {
		if err := p.optimal(items, o, &out); err != nil {
			return Result{}, err
		}
	} else {
		whole := part{last: p.n(), secLast: p.sections()}
		p.replay.begin()
		out.Arena = p.replay.run(&p.problem, &whole, o.Solver, noPlan, p.best)
	}
	out.Optimal = out.Optimal || out.Arena == out.LowerBound
	out.Offsets = p.spread(items)
	if err := p.validator.check(items, out.Offsets); err != nil {
		return Result{}, status.Errorf(status.ErrInternal, "plan by %s is wrong: %w", out.Method, err)
	}
	return out, nil
}

// spread gives the best offsets to the items in the caller's order.
func (p *Planner) spread(items []Item) []int64 {
	p.offsets = grow(p.offsets, len(items))
	if p.n() < len(items) {
		for i := range items {
			p.offsets[i] = 0
			if items[i].Fixed {
				p.offsets[i] = items[i].Offset
			}
		}
	}
	for k, i := range p.item {
		p.offsets[i] = p.best[k]
	}
	return p.offsets
}

// Live returns the indexes of the items that take room at a node.
func Live(items []Item, at int64) []int {
	var out []int
	for i := range items {
		if it := &items[i]; it.occupies() && it.First <= at && at <= it.Last {
			out = append(out, i)
		}
	}
	return out
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
