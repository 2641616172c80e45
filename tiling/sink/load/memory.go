package load

import (
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/argsformat"
	"goatb/tiling/sink/image"
)

// Windows of a tiling task, see image.Functions.Entry.
const (
	argsWindow = iota
	platformWindow
	valueWindow
)

const (
	contextWindow = iota
	logWindow
)

// tiled is a sunk operation with its places in the list's memory.
type tiled struct {
	op      *Sunk
	layout  *image.Layout
	args    *image.Args
	context int64 // where the context begins
	table   *image.IOTable
	argsAt  int64 // where the arguments begin among those of the table
}

// planner gives memory to the tilings of a list.
type planner struct {
	ops   map[int64]*Operation
	fns   *image.Functions
	tiled map[int64]*tiled
	// order lists the keys of tiled in the order of their tasks.
	order []int64
	// tables holds one buffer of arguments for each operation or super kernel, in
	// order; at is where each begins.
	tables []*image.IOTable
	at     map[*image.IOTable]int64
	size   int64
}

// align of contexts and of the argument buffers.
const memoryAlign = 512

func (p *planner) take(size int64) int64 {
	at := p.size
	p.size = (at + size + memoryAlign - 1) / memoryAlign * memoryAlign
	return at
}

// plan lays out contexts and arguments of all tiling tasks. Those of the sub
// nodes of one super kernel share a table.
func (p *planner) plan(l *sink.List) error {
	p.take(image.PlatformBytes)
	byOp := map[int64]*image.IOTable{}
	for i := range l.Tasks {
		t := &l.Tasks[i]
		if t.Kind != sink.PreprocessTask {
			continue
		}
		table := byOp[t.Op]
		if table == nil {
			table = &image.IOTable{}
			byOp[t.Op] = table
			p.tables = append(p.tables, table)
		}
		if err := p.tiling(t, table); err != nil {
			return p.place(t, err)
		}
	}
	for _, table := range p.tables {
		p.at[table] = p.take(table.Size)
	}
	return nil
}

// tilingOf is the operation whose tiling a task runs.
func tilingOf(t *sink.Task) int64 {
	if t.InSuper {
		return t.Sub
	}
	return t.Op
}

// tiling lays out what one tiling task needs.
func (p *planner) tiling(t *sink.Task, table *image.IOTable) error {
	id := tilingOf(t)
	o := p.ops[id]
	if o == nil || o.Sunk == nil {
		return status.Errorf(status.ErrInternal, "want operation %d with what its tiling needs, got none", id)
	}
	if !p.fns.Has(o.Sunk.Spec.Type) {
		return status.Errorf(status.ErrInvalidParam, "no tiling function is registered for operation type %q", o.Sunk.Spec.Type)
	}
	f, err := argsformat.Parse(t.Args)
	if err != nil {
		return err
	}
	x := &tiled{op: o.Sunk, args: image.NewArgs(o.Sunk.Spec, f, t.Engine == sink.CustomAICPU), table: table}
	if x.layout, err = image.NewLayout(o.Sunk.Spec); err != nil {
		return err
	}
	if err := o.Sunk.check(x.layout); err != nil {
		return err
	}
	x.context = p.take(x.layout.Size)
	if x.argsAt, err = table.Add(id, x.args); err != nil {
		return err
	}
	p.tiled[id], p.order = x, append(p.order, id)
	return nil
}

// place names the operation of a task in an error.
func (p *planner) place(t *sink.Task, err error) error {
	op, node := "", ""
	if o := p.ops[tilingOf(t)]; o != nil && o.Label != nil {
		op, node = o.Label.Op, o.Label.Node
	}
	return status.Place(err, status.ErrInternal, op, "load", node)
}

// encode writes context and arguments of a tiling to the list's memory.
func (x *tiled) encode(mem []byte, tables map[*image.IOTable]int64) error {
	base := image.OutputAt(contextWindow, 0)
	var read, data []image.Address
	for i := range x.args.Read {
		at, err := x.args.TensorAt(i)
		if err != nil {
			return err
		}
		read = append(read, image.InputAt(argsWindow, at))
		data = append(data, image.InputAt(valueWindow+i, 0))
	}
	ctx := mem[x.context : x.context+x.layout.Size]
	if err := x.layout.Encode(ctx, base, x.op.Spec, read, image.InputAt(platformWindow, 0)); err != nil {
		return err
	}
	w := image.Words{Published: x.layout.Published(base)}
	if n := x.op.Log.Bytes(); n > 0 {
		w.Log, w.LogBytes = image.OutputAt(logWindow, 0), n
	}
	at := tables[x.table] + x.argsAt
	return x.args.Encode(mem[at:at+x.args.Size()], data, &w)
}
