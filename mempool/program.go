package mempool

import (
	"slices"

	"goatb/status"
)

// Program is a planning problem as a graph of operations has it: items that
// share memory, and nodes on several streams.
//
// Memory has two kinds of sharing. Aliases in Always are one memory whatever
// the plan: a view and what it is a view of. Those in Maybe are a choice: the
// result of an operation that can work in place, the parts of a concatenation.
// One after the other is taken where it is legal, one side holds all of the
// other, and the peak does not grow. The plan is made with those and without
// any; the smaller arena wins, with them where both are equal.
type Program struct {
	Items  []Item
	Always []Alias
	Maybe  []Alias
	// Legal reports whether items a and b may share bytes when item b starts at
	// byte `at` of item a. The default, nil, asks for lifetimes that are apart;
	// the two items of an alias may both live at one node, which reads the one
	// and writes the other.
	Legal func(a, b int, at int64) bool
	// Order is the order of nodes on several streams, and Uses lists the nodes
	// that use each item, in ascending order; First and Last of the items say
	// nothing then. A nil Order is one stream, with the items' lifetimes.
	Order *Order
	Uses  [][]int
}

// Storage is memory that one or several items lie in.
type Storage struct {
	// Item is what is planned: its size holds all members, its lifetime spans
	// theirs.
	Item    Item
	Offset  int64
	Members []int
}

// ProgramPlan is the plan of a Program. It belongs to the caller.
type ProgramPlan struct {
	// Result has an offset for each item of the program.
	Result
	// Storage lists the memory, in the order of its first items.
	Storage []Storage
	// Taken tells which of the Maybe aliases hold in the plan.
	Taken []bool
}

// PlanProgram plans a program. Types 0 to 3 take no Maybe alias. LowerBound and
// Optimal speak of the blocks that were chosen.
//
// Errors: those of Plan; ErrInvalidParam for aliases that contradict each other
// and for uses that name no node.
func (p *Planner) PlanProgram(g *Program, o Options) (ProgramPlan, error) {
	switch {
	case p == nil:
		return ProgramPlan{}, errNoPlanner()
	case g == nil:
		return ProgramPlan{}, status.Errorf(status.ErrInvalidParam, "want a program, got nil")
	}
	if err := g.check(); err != nil {
		return ProgramPlan{}, err
	}
	items := g.lives()
	if _, _, err := p.survey(items, alignOf(o), o.Solver); err != nil {
		return ProgramPlan{}, err
	}
	apart := newGroups(items)
	for i := range g.Always {
		if err := apart.join(&g.Always[i]); err != nil {
			return ProgramPlan{}, err
		}
	}
	if o.Solver != Optimal || len(g.Maybe) == 0 {
		return p.planGroups(g, apart, make([]bool, len(g.Maybe)), o)
	}
	shared, taken, peak := g.share(apart, alignOf(o))
	with, err := p.planGroups(g, shared, taken, o)
	if err != nil || with.Arena <= peak || !slices.Contains(taken, true) {
		return with, err
	}
	without, err := p.planGroups(g, apart, make([]bool, len(g.Maybe)), o)
	if err != nil || with.Arena <= without.Arena {
		return with, err
	}
	return without, nil
}

func errNoPlanner() error {
	return status.Errorf(status.ErrInvalidParam, "the planner is nil: the zero Planner is ready")
}

// check refuses a program whose lists do not fit.
func (g *Program) check() error {
	all := newGroups(g.Items)
	for _, list := range [...][]Alias{g.Always, g.Maybe} {
		for i := range list {
			if err := all.check(&list[i]); err != nil {
				return err
			}
		}
	}
	if g.Order == nil {
		return nil
	}
	if len(g.Uses) != len(g.Items) {
		return status.Errorf(status.ErrInvalidParam, "want the uses of each of %d items, got %d", len(g.Items), len(g.Uses))
	}
	for i, uses := range g.Uses {
		for k, u := range uses {
			if u < 0 || u >= g.Order.Len() || k > 0 && u <= uses[k-1] {
				return status.Errorf(status.ErrInvalidParam, "item %d: want uses in ascending order below node %d, got node %d", i, g.Order.Len(), u)
			}
		}
	}
	return nil
}

// lives returns the items with their lifetimes in the order of the nodes'
// numbers.
func (g *Program) lives() []Item {
	if g.Order == nil {
		return g.Items
	}
	items := make([]Item, len(g.Items))
	for i, it := range g.Items {
		it.First, it.Last = 0, -1
		if u := g.Uses[i]; len(u) > 0 {
			it.First, it.Last = int64(u[0]), int64(u[len(u)-1])
		}
		items[i] = it
	}
	return items
}

// planGroups plans the blocks of groups and puts the items into them.
func (p *Planner) planGroups(g *Program, groups *groups, taken []bool, o Options) (ProgramPlan, error) {
	blocks, err := groups.blocks(alignOf(o))
	if err != nil {
		return ProgramPlan{}, err
	}
	items := make([]Item, len(blocks))
	for i := range blocks {
		items[i] = blocks[i].Item
	}
	out := ProgramPlan{Storage: blocks, Taken: taken}
	if g.Order == nil {
		out.Result, err = p.Plan(items, o)
	} else {
		out.Result, err = p.planStreams(items, usesOf(blocks, g.Uses), g.Order, o)
	}
	if err != nil {
		return ProgramPlan{}, err
	}
	offsets := out.Offsets
	out.Offsets = make([]int64, len(g.Items))
	for i := range blocks {
		blocks[i].Offset = offsets[i]
		low := groups.low(blocks[i].Members)
		for _, k := range blocks[i].Members {
			_, at := groups.find(k)
			out.Offsets[k] = offsets[i] + at - low
		}
	}
	return out, nil
}

// alignOf returns the alignment of items that ask for none.
func alignOf(o Options) int64 {
	if o.Align == 0 {
		return DefaultAlign
	}
	return o.Align
}
