package sim

import (
	"goatb/device"
	"goatb/device/sim/profile"
)

// Load checks a list and makes a model of it.
func (d *Device) Load(l *device.TaskList) (device.Model, error) {
	if err := d.exists(); err != nil {
		return nil, err
	}
	can, err := device.LimitsOf(d)
	if err != nil {
		return nil, err
	}
	if err := l.Check(can); err != nil {
		return nil, err
	}
	m := &Model{dev: d, label: device.Label{Op: l.Name}, memory: &bases{}}
	inner := m.stand(l)
	if m.inner, err = d.inner.Load(inner); err != nil {
		return nil, err
	}
	m.used = inner.Extents()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.charge("plan", l.Name, d.costs.LaunchHost*float64(len(l.Tasks)))
	for range l.Streams {
		m.lanes = append(m.lanes, &Stream{dev: d, id: d.streams, lane: true})
		d.streams++
	}
	return m, nil
}

// stand makes the list that the inner device runs, whose kernels note what they
// do, and notes how the tasks are timed.
func (m *Model) stand(l *device.TaskList) *device.TaskList {
	out := *l
	out.Tasks = append([]device.Task(nil), l.Tasks...)
	kernels := map[taskName]int{} // first kernel of each task
	for i := range out.Tasks {
		t := &out.Tasks[i]
		x := listed{kind: t.Kind, lane: int(t.Stream), label: t.Label, event: -1, first: len(m.runs)}
		kernels[taskName{t.Stream, t.ID}] = x.first
		switch t.Kind {
		case device.KernelTask, device.AllKernelTask:
			k := m.kernel(t.Kernel)
			t.Kernel, x.kernels = &k, 1
		case device.SuperKernelTask:
			t.Super = m.super(t.Super, &x)
		case device.PreprocessTask:
			x.group = tiled(l, i)
			if t.Preprocess.Notify {
				x.event = int(t.Preprocess.Flag)
			}
		case device.EventWaitTask, device.EventRecordTask:
			x.event = int(t.Event)
		case device.UpdateTask:
			u := *t.Update
			if first, ok := kernels[taskName{u.Target, u.Task}]; ok {
				u.Binary = m.binary(u.Binary, first)
			}
			t.Update = &u
		case device.CopyTask:
			x.bytes, x.dst, x.src = t.Copy.Dst.Bytes(), spaceOf(&t.Copy.Dst), spaceOf(&t.Copy.Src)
			if !m.dev.numerics && !(addressable(&t.Copy.Dst) && addressable(&t.Copy.Src)) {
				t.Kind, t.Copy = device.NopTask, nil
			}
		}
		m.tasks = append(m.tasks, x)
	}
	return &out
}

type taskName struct {
	stream device.StreamID
	id     device.TaskID
}

// tiled returns the price group of the kernel that a preprocess task computes the
// tiling of: the next kernel of the same operation.
func tiled(l *device.TaskList, at int) profile.Group {
	label := l.Tasks[at].Label
	same := func(o *device.Label) bool { return label != nil && o != nil && *label == *o }
	for i := at + 1; i < len(l.Tasks); i++ {
		t := &l.Tasks[i]
		if t.Kernel != nil && same(t.Label) {
			return groupOf(t.Kernel.Program)
		}
		for j := range t.Super {
			if same(t.Super[j].Label) {
				return groupOf(t.Super[j].Kernel.Program)
			}
		}
	}
	return profile.Vector
}

// kernel stands in for a kernel.
func (m *Model) kernel(k *device.Kernel) device.Kernel {
	out := *k
	at := len(m.runs)
	m.runs = append(m.runs, run{program: k.Program, inputs: k.Inputs})
	m.operands = append(m.operands, k.Operands)
	out.Program = m.watch(k.Program, at)
	if out.Vector != nil && !m.dev.numerics {
		out.Vector = &nothing
	}
	if !m.dev.numerics {
		out.Operands, out.Inputs, out.Scratch = nil, 0, device.Address{}
	}
	return out
}

// super stands in for the kernels of a super kernel.
func (m *Model) super(subs []device.SubKernel, x *listed) []device.SubKernel {
	out := append([]device.SubKernel(nil), subs...)
	x.kernels = len(out)
	for i := range out {
		s := &out[i]
		at := len(m.runs)
		s.Kernel = m.kernel(&s.Kernel)
		x.flags = append(x.flags, -1)
		if s.Sunk != nil {
			sunk := *s.Sunk
			x.flags[i] = int(sunk.Flag)
			sunk.Binary = m.binary(sunk.Binary, at)
			s.Sunk = &sunk
		}
	}
	return out
}

// binary stands in for the variants of kernel `at`.
func (m *Model) binary(b *device.Binary, at int) *device.Binary {
	if b == nil {
		return nil
	}
	out := &device.Binary{Name: b.Name, Variants: append([]device.Variant(nil), b.Variants...)}
	for i := range out.Variants {
		v := &out.Variants[i]
		v.Program = m.watch(v.Program, at)
		if v.Vector != nil && !m.dev.numerics {
			v.Vector = &nothing
		}
	}
	return out
}

// watch makes a program that notes what kernel `at` does and, with numerics on,
// does it.
func (m *Model) watch(p *device.Program, at int) *device.Program {
	begin := func(a *device.Args) error {
		m.note(p, at, a)
		if !m.dev.numerics {
			return nil
		}
		return p.Prepare(a)
	}
	return &device.Program{Name: p.Name, Class: p.Class, Cost: p.Cost, Begin: begin, Run: func(a *device.Args, block int) error {
		if !m.dev.numerics {
			return nil
		}
		return p.Run(a, block)
	}}
}

// note keeps what a launch costs.
func (m *Model) note(p *device.Program, at int, a *device.Args) {
	r := run{program: p, ran: true, blocks: a.Blocks, cost: costOf(p, a)}
	m.mu.Lock()
	defer m.mu.Unlock()
	r.inputs = m.runs[at].inputs
	m.runs[at] = r
}

func spaceOf(a *device.Address) device.Space {
	if a.Type == device.AbsoluteMemory {
		return a.Buffer.Space()
	}
	return device.DeviceSpace
}

func addressable(a *device.Address) bool {
	return a.Type == device.AbsoluteMemory && (a.Buffer.Size() == 0 || a.Buffer.Bytes() != nil)
}
