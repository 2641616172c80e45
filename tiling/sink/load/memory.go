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
	op     *Sunk
	layout *image.Layout
	args   *image.Args
	// context and argsAt are where context and arguments begin.
	context, argsAt int64
}

// planner gives memory to the tilings of a list.
type planner struct {
	ops   map[int64]*Operation
	fns   *image.Functions
	tiled map[int64]*tiled
	// order lists the keys of tiled in the order of their tasks.
	order []int64
	size  int64
}

// memoryAlign is the alignment of contexts and arguments.
const memoryAlign = 512

func (p *planner) take(size int64) int64 {
	at := p.size
	p.size = (at + size + memoryAlign - 1) / memoryAlign * memoryAlign
	return at
}

// plan lays out contexts and arguments of all tiling tasks.
func (p *planner) plan(l *sink.List) error {
	p.take(image.PlatformBytes)
	for i := range l.Tasks {
		if t := &l.Tasks[i]; t.Kind == sink.PreprocessTask {
			if err := p.tiling(t); err != nil {
				return p.place(t, err)
			}
		}
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
func (p *planner) tiling(t *sink.Task) error {
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
	x := &tiled{op: o.Sunk, args: image.NewArgs(o.Sunk.Spec, f, t.Engine == sink.CustomAICPU)}
	if x.layout, err = image.NewLayout(o.Sunk.Spec); err != nil {
		return err
	}
	if err := o.Sunk.check(x.layout); err != nil {
		return err
	}
	x.context, x.argsAt = p.take(x.layout.Size), p.take(x.args.Size())
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
func (x *tiled) encode(mem []byte) error {
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
	return x.args.Encode(mem[x.argsAt:x.argsAt+x.args.Size()], data, &w)
}
