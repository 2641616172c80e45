package kernelgraph

import (
	"math"

	"goatb/mempool"
	"goatb/status"
)

// Alignments of the workspace, in bytes.
const (
	// ScratchAlign is the alignment of a kernel's scratch memory.
	ScratchAlign = 64
	// SectionAlign is the alignment of each stream's scratch section, of the
	// intermediates and of each of them.
	SectionAlign = 512
)

// Workspace is the plan of the memory that a graph needs besides its operands:
//
//	[ scratch of stream 0 | scratch of stream 1 | ... ][ intermediates ]
//
// The scratch of a stream is the most that one of its kernels needs: they run
// one after the other. A Workspace is immutable.
type Workspace struct {
	// Size is the total in bytes; Scratch and Arena are its two parts.
	Size, Scratch, Arena int64
	// LowerBound is what no plan of the intermediates can be below.
	LowerBound int64
	// Method names what found the plan; Optimal says that Arena cannot be
	// smaller. Nodes counts the nodes of the exact search.
	Method  string
	Optimal bool
	Nodes   int64
	// PeakAt is the first node at which the total of live memory is largest.
	PeakAt int
	// ScratchAt is the offset of each stream's scratch section and ScratchOf
	// its size.
	ScratchAt, ScratchOf []int64
	// Offset holds for each temporary its offset in the workspace, -1 for
	// every other tensor.
	Offset []int64
	// Lives is the memory of the intermediates, each piece with its life: that
	// of a temporary, or of several that share it.
	Lives []Life
	// Within lists the temporaries that lie in a piece of Lives without being
	// its Ref.
	Within []Within
}

// Within says that a temporary lies in the memory of another one.
type Within struct{ Ref, In Ref }

// WorkspaceOptions choose how a workspace is planned.
type WorkspaceOptions struct {
	Solver mempool.SolverType
	// PerOperation plans each operation of the tree on its own: its arena is
	// one block of the operation that contains it. The default is one plan for
	// the whole tree.
	PerOperation bool
}

// PlanWorkspace plans the workspace. Errors: ErrOutOfDeviceMemory when sizes
// leave int64.
func (g *Graph) PlanWorkspace(p *mempool.Planner, o WorkspaceOptions) (*Workspace, error) {
	w := &Workspace{Offset: make([]int64, len(g.Tensors))}
	for i := range w.Offset {
		w.Offset[i] = -1
	}
	if err := w.planScratch(g); err != nil {
		return nil, err
	}
	var err error
	if o.PerOperation {
		err = w.planScopes(g, p, o.Solver)
	} else {
		err = w.planWhole(g, p, o.Solver)
	}
	if err != nil {
		return nil, err
	}
	if w.Arena, err = alignUp(w.Arena, SectionAlign); err != nil {
		return nil, err
	}
	if w.Scratch > math.MaxInt64-w.Arena {
		return nil, tooLarge(w.Scratch)
	}
	for r := range w.Offset {
		if w.Offset[r] >= 0 {
			w.Offset[r] += w.Scratch
		}
	}
	w.Size = w.Scratch + w.Arena
	return w, nil
}

func (w *Workspace) planScratch(g *Graph) error {
	w.ScratchAt, w.ScratchOf = make([]int64, g.Streams), make([]int64, g.Streams)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		size, err := alignUp(n.Scratch, ScratchAlign)
		if err != nil {
			return status.Place(err, status.ErrOutOfDeviceMemory, n.Op, "", n.Path)
		}
		w.ScratchOf[n.Stream] = max(w.ScratchOf[n.Stream], size)
	}
	for s := range w.ScratchAt {
		w.ScratchAt[s] = w.Scratch
		size, err := alignUp(w.ScratchOf[s], SectionAlign)
		if err != nil || w.Scratch > math.MaxInt64-size {
			return tooLarge(w.ScratchOf[s])
		}
		w.Scratch += size
	}
	return nil
}

func tooLarge(n int64) error {
	return status.Errorf(status.ErrOutOfDeviceMemory, "workspace part of %d bytes does not fit int64", n)
}

func alignUp(n, to int64) (int64, error) {
	if n < 0 || n > math.MaxInt64-to {
		return 0, tooLarge(n)
	}
	return (n + to - 1) / to * to, nil
}

// planWhole plans all temporaries together.
func (w *Workspace) planWhole(g *Graph, p *mempool.Planner, solver mempool.SolverType) error {
	u := newUsage(g)
	prog := u.program()
	prog.Maybe, prog.Legal = u.choices(), u.legal
	r, err := p.PlanProgram(prog, options(solver))
	if err != nil {
		return err
	}
	w.Arena, w.LowerBound, w.Method, w.Optimal = r.Arena, r.LowerBound, r.Method, r.Optimal
	w.Nodes, w.PeakAt = r.Nodes, int(r.PeakAt)
	for i, ref := range u.temps {
		w.Offset[ref] = r.Offsets[i]
	}
	for _, s := range r.Storage {
		largest := s.Members[0]
		for _, i := range s.Members[1:] {
			if prog.Items[i].Size > prog.Items[largest].Size {
				largest = i
			}
		}
		w.Lives = append(w.Lives, Life{Ref: u.temps[largest], First: int(s.Item.First), Last: int(s.Item.Last)})
		for _, i := range s.Members {
			if i != largest {
				w.Within = append(w.Within, Within{Ref: u.temps[i], In: u.temps[largest]})
			}
		}
	}
	return nil
}

// program is the planning problem of the temporaries, each in memory of its own.
func (u *usage) program() *mempool.Program {
	prog := &mempool.Program{Items: make([]mempool.Item, len(u.temps))}
	for i := range u.temps {
		prog.Items[i] = u.item(i)
	}
	if u.g.Streams > 1 {
		prog.Order = u.order
		for i := range u.temps {
			prog.Uses = append(prog.Uses, u.nodes(i))
		}
	}
	return prog
}

// SetupNodes bounds the exact search of a plan. It is a count of search nodes,
// not a time, so that equal graphs get equal plans on every machine. A node takes
// some microseconds, so Setup waits a few milliseconds at most, and only where no
// heuristic meets the lower bound; half of the hardest published instances are
// solved within it.
const SetupNodes = 1 << 10

func options(solver mempool.SolverType) mempool.Options {
	return mempool.Options{Solver: solver, Align: SectionAlign, Nodes: SetupNodes}
}

// item is temporary i with its span of nodes in the order of the list.
func (u *usage) item(i int) mempool.Item {
	uses := u.uses[i]
	return mempool.Item{Size: u.g.Tensors[u.temps[i]].Desc.Bytes(), First: int64(uses[0].node), Last: int64(uses[len(uses)-1].node)}
}

// planScopes plans scope by scope, inner ones first: the arena of a scope is an
// item of the enclosing one, live as long as anything in it. On several streams
// a life lasts until every later node of the list comes after all its uses.
func (w *Workspace) planScopes(g *Graph, p *mempool.Planner, solver mempool.SolverType) error {
	u := newUsage(g)
	if err := w.boundWhole(u, p); err != nil {
		return err
	}
	arenas := make([]mempool.Item, len(g.Scopes))
	shift := make([]int64, len(g.Scopes))
	for s := len(g.Scopes) - 1; s >= 0; s-- {
		items, who := u.scopeItems(s, arenas)
		r, err := p.Plan(items, options(solver))
		if err != nil {
			return err
		}
		for i, m := range who {
			if m.scope < 0 {
				w.Offset[m.ref] = r.Offsets[i]
			} else {
				shift[m.scope] = r.Offsets[i]
			}
		}
		arenas[s] = union(items, r.Arena)
		w.Method = r.Method
	}
	for s := 1; s < len(g.Scopes); s++ {
		shift[s] += shift[g.Scopes[s].Parent]
	}
	for _, r := range u.temps {
		w.Offset[r] += shift[g.Tensors[r].Scope]
	}
	w.Arena = arenas[0].Size
	w.Optimal = w.Arena == w.LowerBound
	return nil
}

// boundWhole takes the lives, the peak and the lower bound of one plan for all
// temporaries, each in memory of its own.
func (w *Workspace) boundWhole(u *usage, p *mempool.Planner) error {
	w.Lives = u.g.Lives()
	r, err := p.PlanProgram(u.program(), options(mempool.Optimal))
	w.LowerBound, w.PeakAt = r.LowerBound, int(r.PeakAt)
	return err
}

// member is an item of a scope: a temporary, or the arena of an inner scope.
type member struct {
	ref   Ref
	scope int
}

// scopeItems lists what the arena of scope s holds.
func (u *usage) scopeItems(s int, arenas []mempool.Item) (items []mempool.Item, who []member) {
	g := u.g
	for i, r := range u.temps {
		if g.Tensors[r].Scope == s {
			it := u.item(i)
			it.Last = int64(u.order.LinearEnd(u.nodes(i)))
			items, who = append(items, it), append(who, member{r, -1})
		}
	}
	for c := s + 1; c < len(g.Scopes); c++ {
		if g.Scopes[c].Parent == s && arenas[c].Size > 0 {
			items, who = append(items, arenas[c]), append(who, member{Absent, c})
		}
	}
	return items, who
}

// union is the item of an arena that holds all items.
func union(items []mempool.Item, arena int64) mempool.Item {
	u := mempool.Item{Size: arena}
	for i, it := range items {
		if i == 0 || it.First < u.First {
			u.First = it.First
		}
		if i == 0 || it.Last > u.Last {
			u.Last = it.Last
		}
	}
	return u
}
