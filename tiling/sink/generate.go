package sink

import (
	"goatb/kernel"
	"goatb/status"
)

// Captured is a segment of a graph that becomes one task list. All slices have
// an entry for each operation.
type Captured struct {
	Ops   []Op
	Marks []Mark
	// Tasks are those that each operation has by itself, in order.
	Tasks [][]Task
	// Workspaces are those of Before.Plan.
	Workspaces [][]Workspace
	// Supers are the super kernels by the name of their scope. Operations of one
	// scope that follow each other in the graph are fused.
	Supers []SuperKernel
}

// generator puts a list together.
type generator struct {
	*Captured
	a        *Assignment
	soc      *Profile
	platform *kernel.Machine
	list     List
}

// Generate makes the task list of a segment with the resources of Assign: for
// each operation the waits of its tiling, its tasks, and the records that later
// tilings wait for; at the end the joins of the attached streams. Errors are
// those of Sequence and SuperKernel, and ErrInvalidGraph for an operation that
// is tiled on the host, for one in a scope without a super kernel, for a super
// kernel on two main streams, and for a tiling that reads what its own super
// kernel makes: it would wait for a kernel that waits for it.
func Generate(c *Captured, a *Assignment, soc *Profile, platform *kernel.Machine) (*List, error) {
	g := generator{Captured: c, a: a, soc: soc, platform: platform, list: List{Streams: a.Streams, Events: a.Events}}
	for i := 0; i < len(c.Ops); {
		n, err := g.step(i)
		if err != nil {
			return nil, err
		}
		i += n
	}
	for _, e := range a.Joins {
		id := c.Ops[e.From].ID
		g.list.Tasks = append(g.list.Tasks,
			Task{Kind: RecordTask, Stream: e.FromStream, Op: id, Event: e.Event},
			Task{Kind: WaitTask, Stream: e.ToStream, Op: id, Event: e.Event})
	}
	return &g.list, nil
}

// step adds operation i, or the super kernel that starts there, and returns the
// number of operations.
func (g *generator) step(i int) (int, error) {
	o, m := &g.Ops[i], &g.Marks[i]
	if m.Unknown || o.Unknown {
		return 0, o.fail(status.ErrInvalidGraph, "gen", "an operation that is tiled on the host cannot be captured: %s", m)
	}
	if o.Fusion.Scope != "" {
		return g.fused(i)
	}
	tasks := g.Tasks[i]
	sunk, err := Sinks(o, m)
	if err != nil {
		return 0, err
	}
	if sunk {
		if tasks, err = g.sequence(i).Update(tasks); err != nil {
			return 0, err
		}
	}
	g.add(o.ID, tasks, i, i)
	return 1, nil
}

// sequence gathers what the tasks of a sunk operation are made of.
func (g *generator) sequence(i int) *Sequence {
	s := &Sequence{Op: &g.Ops[i], Mark: &g.Marks[i], Workspaces: g.Workspaces[i], Soc: g.soc, Platform: g.platform}
	if g.a.Attached[i] != None {
		s.Streams = []int{g.a.Attached[i]}
	}
	if g.a.Event[i] != None {
		s.Events = []int{g.a.Event[i]}
	}
	return s
}

// add appends the tasks of operations first..last, which carry the id `op` in
// waits and records, between the waits of their tilings and the records for
// later ones.
func (g *generator) add(op int64, tasks []Task, first, last int) {
	for _, e := range g.a.Waits {
		if e.To >= first && e.To <= last {
			g.list.Tasks = append(g.list.Tasks, Task{Kind: WaitTask, Stream: e.ToStream, Op: op, Event: e.Event})
		}
	}
	base := len(g.list.Tasks)
	for _, t := range tasks {
		if t.Kind == UpdateTask {
			t.Target += base
		}
		g.list.Tasks = append(g.list.Tasks, t)
	}
	for _, e := range g.a.Waits {
		if e.From >= first && e.From <= last {
			g.list.Tasks = append(g.list.Tasks, Task{Kind: RecordTask, Stream: e.FromStream, Op: op, Event: e.Event})
		}
	}
}

// fused adds the super kernel that starts at operation i.
func (g *generator) fused(i int) (int, error) {
	scope := g.Ops[i].Fusion.Scope
	k := g.super(scope)
	if k == nil {
		return 0, g.Ops[i].fail(status.ErrInvalidGraph, "gen", "want a super kernel for scope %q, got none", scope)
	}
	last := i
	for last+1 < len(g.Ops) && g.Ops[last+1].Fusion.Scope == scope {
		last++
	}
	var members []Member
	for j := i; j <= last; j++ {
		m, err := g.member(k, i, j)
		if err != nil {
			return 0, err
		}
		members = append(members, m)
	}
	tasks, err := k.Fuse(members)
	if err != nil {
		return 0, err
	}
	g.add(k.Op, tasks, i, last)
	return last - i + 1, nil
}

func (g *generator) super(scope string) *SuperKernel {
	for i := range g.Supers {
		if g.Supers[i].Name == scope {
			return &g.Supers[i]
		}
	}
	return nil
}

// member makes operation j one of the super kernel whose first is operation
// `first`.
func (g *generator) member(k *SuperKernel, first, j int) (Member, error) {
	o, mark := &g.Ops[j], &g.Marks[j]
	m := Member{Op: o, Mark: mark, Tasks: g.Tasks[j]}
	if o.Stream != k.Stream {
		return m, o.fail(status.ErrInvalidGraph, "gen", "want the main stream %d of super kernel %s, got %d", k.Stream, k.Name, o.Stream)
	}
	for _, e := range g.a.Waits {
		if e.To == j && e.From >= first {
			return m, o.fail(status.ErrInvalidGraph, "gen", "its tiling reads what %s makes in the same super kernel %s", g.Ops[e.From].Name, k.Name)
		}
	}
	sunk, err := Sinks(o, mark)
	if err != nil || !sunk {
		return m, err
	}
	m.Tasks, err = g.sequence(j).SubNode(m.Tasks)
	return m, err
}
