package load

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/image"
)

// Loaded is a list that a device can load.
type Loaded struct {
	List *device.TaskList
	// Memory holds contexts, arguments and platform information; Writes are what
	// the first execution stores there. Whoever loads the list frees the memory
	// when it is unloaded.
	Memory device.Buffer
	Writes []device.Write
}

// loader makes one list.
type loader struct {
	planner
	list    *device.TaskList
	entry   *device.Function
	memory  device.Buffer
	ids     []device.TaskID // of the tasks of the generated list
	kernels map[int64]int   // how many kernels of an operation are there
}

// List makes the list of a device from a generated one. ops are the operations
// by id, fns the tiling functions, machine what they learn about it, and alloc
// makes device memory.
//
// Errors name the operation: one that is not in ops, has too few or too many
// kernels, or lacks what its tiling needs (ErrInternal), a tiling function that
// is not registered (ErrInvalidParam), and those of package image and alloc.
func List(name string, l *sink.List, ops map[int64]*Operation, fns *image.Functions, machine kernel.Machine, alloc func(int64) (device.Buffer, error)) (*Loaded, error) {
	b := loader{
		planner: planner{ops: ops, fns: fns, tiled: map[int64]*tiled{}},
		list:    &device.TaskList{Name: name, Streams: l.Streams, Events: l.Events},
		entry:   fns.Entry(), kernels: map[int64]int{},
	}
	if err := b.plan(l); err != nil {
		return nil, err
	}
	out := &Loaded{List: b.list}
	if len(b.tiled) > 0 {
		if err := b.image(out, machine, alloc); err != nil {
			return nil, err
		}
	}
	for i := range l.Tasks {
		if err := b.add(&l.Tasks[i]); err != nil {
			return nil, b.place(&l.Tasks[i], err)
		}
	}
	if err := b.unused(l); err != nil {
		return nil, err
	}
	return out, nil
}

// image allocates the memory and makes what the first execution stores there.
func (b *loader) image(out *Loaded, machine kernel.Machine, alloc func(int64) (device.Buffer, error)) error {
	mem := make([]byte, b.size)
	image.PutPlatform(mem, machine)
	for _, id := range b.order {
		if err := b.tiled[id].encode(mem); err != nil {
			return b.place(&sink.Task{Op: id}, err)
		}
	}
	var err error
	if b.memory, err = alloc(b.size); err != nil {
		return err
	}
	out.Memory = b.memory
	out.Writes = []device.Write{{To: device.Absolute(b.memory), Data: mem}}
	return nil
}

// absolute is a window of the list's memory.
func (b *loader) absolute(at, size int64) device.Address {
	return device.Absolute(b.memory.At(at, size))
}

// add makes one task.
func (b *loader) add(t *sink.Task) error {
	d := device.Task{Stream: device.StreamID(t.Stream), OpIndex: t.Op, Format: t.Args}
	if o := b.ops[tilingOf(t)]; o != nil {
		d.Label = o.Label
	}
	var err error
	switch t.Kind {
	case sink.PreprocessTask:
		d.Kind, d.Preprocess = device.PreprocessTask, b.preprocess(t)
	case sink.WaitTask:
		d.Kind, d.Event = device.EventWaitTask, device.EventID(t.Event)
	case sink.RecordTask:
		d.Kind, d.Event = device.EventRecordTask, device.EventID(t.Event)
	case sink.NopTask:
		d.Kind = device.NopTask
	case sink.UpdateTask:
		d.Kind = device.UpdateTask
		d.Update, err = b.update(t)
	case sink.SuperKernelTask:
		d.Kind = device.SuperKernelTask
		d.Super, err = b.super(t)
	default:
		d.Kind = device.AllKernelTask
		if t.Kind == sink.KernelTask {
			d.Kind = device.KernelTask
		}
		for _, c := range t.Contexts {
			d.Format += c.Args
		}
		d.Kernel, err = b.kernel(t.Op, t.Updated, t.BlockDim, t.Key)
	}
	if err != nil {
		return err
	}
	b.ids = append(b.ids, b.list.Add(d))
	return nil
}

// preprocess is a tiling task.
func (b *loader) preprocess(t *sink.Task) *device.Preprocess {
	x := b.tiled[tilingOf(t)]
	p := &device.Preprocess{
		Function: b.entry, Engine: device.AICPU, Deadline: x.op.Deadline,
		Inputs:  append([]device.Address{b.absolute(x.argsAt, x.args.Size()), b.absolute(0, image.PlatformBytes)}, x.op.Values...),
		Outputs: []device.Address{b.absolute(x.context, x.layout.Size)},
	}
	if t.Engine == sink.CustomAICPU {
		p.Engine = device.CustomAICPU
	}
	if x.op.Log.Bytes() > 0 {
		p.Outputs = append(p.Outputs, x.op.Log)
	}
	if t.InSuper {
		p.Notify, p.Flag = true, device.EventID(t.Event)
	}
	return p
}

// patch is where the parameters of an operation's kernel come from.
func (b *loader) patch(op int64) (device.Patch, error) {
	x := b.tiled[op]
	if x == nil {
		return device.Patch{}, status.Errorf(status.ErrInternal, "an update before its tiling task")
	}
	return device.Patch{
		Key:    b.absolute(x.context+x.layout.KeyAt(), 8),
		Blocks: b.absolute(x.context+x.layout.BlockDimAt(), 4),
		Binary: x.op.Binary,
	}, nil
}

func (b *loader) update(t *sink.Task) (*device.Update, error) {
	if t.Target < 0 || t.Target >= len(b.ids) {
		return nil, status.Errorf(status.ErrInternal, "an update of task %d before it is there", t.Target)
	}
	p, err := b.patch(t.Op)
	return &device.Update{Target: b.list.Tasks[t.Target].Stream, Task: b.ids[t.Target], Patch: p}, err
}

// kernel is the next kernel of an operation.
func (b *loader) kernel(op int64, updated bool, blocks uint32, key uint64) (*device.Kernel, error) {
	o, n := b.ops[op], b.kernels[op]
	if o == nil || n >= len(o.Kernels) {
		return nil, status.Errorf(status.ErrInternal, "want kernel %d of operation %d, got none", n, op)
	}
	b.kernels[op]++
	k := o.Kernels[n]
	if !updated {
		return &k, nil
	}
	x := b.tiled[op]
	if x == nil {
		return nil, status.Errorf(status.ErrInternal, "a kernel that is updated and has no tiling task")
	}
	k.Blocks, k.Key, k.Inline = int(blocks), key, nil
	k.Tiling = b.absolute(x.context+image.DataAt, x.op.DataBytes)
	return &k, nil
}

// super are the kernels of a super kernel.
func (b *loader) super(t *sink.Task) ([]device.SubKernel, error) {
	var subs []device.SubKernel
	for i := range t.Subs {
		s := &t.Subs[i]
		k, err := b.kernel(s.Op, s.Dynamic, s.BlockDim, s.Key)
		if err != nil {
			return nil, err
		}
		sub := device.SubKernel{Label: b.ops[s.Op].Label, Kernel: *k}
		if s.Dynamic {
			p, err := b.patch(s.Op)
			if err != nil {
				return nil, err
			}
			sub.Sunk = &device.Sunk{Flag: device.EventID(s.Flag), Patch: p}
		}
		subs = append(subs, sub)
	}
	return subs, nil
}

// unused refuses operations with more kernels than the list has tasks for.
func (b *loader) unused(l *sink.List) error {
	for i := range l.Tasks {
		op := l.Tasks[i].Op
		if o := b.ops[op]; o != nil && b.kernels[op] < len(o.Kernels) {
			return b.place(&l.Tasks[i], status.Errorf(status.ErrInternal, "want tasks for %d kernels of operation %d, got %d", len(o.Kernels), op, b.kernels[op]))
		}
	}
	return nil
}
