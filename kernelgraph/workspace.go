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
	// smaller.
	Method  string
	Optimal bool
	// ScratchAt is the offset of each stream's scratch section and ScratchOf
	// its size.
	ScratchAt, ScratchOf []int64
	// Offset holds for each temporary its offset in the workspace, -1 for
	// every other tensor.
	Offset []int64
	// Lives are the temporaries with their lives.
	Lives []Life
}

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
	w := &Workspace{Offset: make([]int64, len(g.Tensors)), Lives: g.Lives()}
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
	for _, l := range w.Lives {
		w.Offset[l.Ref] += w.Scratch
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
	items := make([]mempool.Item, len(w.Lives))
	for i, l := range w.Lives {
		items[i] = g.item(l)
	}
	r, err := p.Plan(items, mempool.Options{Solver: solver, Align: SectionAlign})
	if err != nil {
		return err
	}
	w.Arena, w.LowerBound, w.Method, w.Optimal = r.Arena, r.LowerBound, r.Method, r.Optimal
	for i, l := range w.Lives {
		w.Offset[l.Ref] = r.Offsets[i]
	}
	return nil
}

func (g *Graph) item(l Life) mempool.Item {
	size, _ := alignUp(g.Tensors[l.Ref].Desc.Bytes(), SectionAlign) // a checked descriptor fits
	return mempool.Item{Size: size, First: int64(l.First), Last: int64(l.Last)}
}

// planScopes plans scope by scope, inner ones first: the arena of a scope is an
// item of the enclosing one, live as long as anything in it.
func (w *Workspace) planScopes(g *Graph, p *mempool.Planner, solver mempool.SolverType) error {
	type member struct {
		ref   Ref
		scope int
	}
	arenas := make([]mempool.Item, len(g.Scopes))
	shift := make([]int64, len(g.Scopes))
	whole := Workspace{Offset: make([]int64, len(g.Tensors)), Lives: w.Lives}
	if err := whole.planWhole(g, p, mempool.Optimal); err != nil {
		return err
	}
	for s := len(g.Scopes) - 1; s >= 0; s-- {
		var items []mempool.Item
		var who []member
		for _, l := range w.Lives {
			if g.Tensors[l.Ref].Scope == s {
				items, who = append(items, g.item(l)), append(who, member{l.Ref, -1})
			}
		}
		for c := s + 1; c < len(g.Scopes); c++ {
			if g.Scopes[c].Parent == s && arenas[c].Size > 0 {
				items, who = append(items, arenas[c]), append(who, member{Absent, c})
			}
		}
		r, err := p.Plan(items, mempool.Options{Solver: solver, Align: SectionAlign})
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
	for _, l := range w.Lives {
		w.Offset[l.Ref] += shift[g.Tensors[l.Ref].Scope]
	}
	w.Arena, w.LowerBound = arenas[0].Size, whole.LowerBound
	w.Optimal = w.Arena == w.LowerBound
	return nil
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
