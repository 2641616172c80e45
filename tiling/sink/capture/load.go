package capture

import (
	"errors"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/image"
	"goatb/tiling/sink/load"
)

// valueAlign is the alignment of the host data of an input on the device.
const valueAlign = 64

// window is the place of an input's host data in the block of values.
type window struct {
	input    int
	at, size int64
}

// loading is the state of a Load.
type loading struct {
	*Plan
	g   *Graph
	dev device.ModelDevice
	fns *image.Functions
	// size is that of the block of values.
	size int64
}

// Load brings the lists of a plan to a device. Errors: those of package load and
// of the device; then nothing stays loaded.
func (p *Plan) Load(dev device.ModelDevice) (*Graph, error) {
	l := &loading{Plan: p, g: &Graph{Plan: p, dev: dev, parts: make([]part, len(p.Segments))}, dev: dev}
	if err := l.load(); err != nil {
		return nil, errors.Join(status.Place(err, status.ErrDeviceFail, p.Settings.Name, "load", ""), l.g.Close())
	}
	return l.g, nil
}

func (l *loading) load() error {
	var err error
	if l.fns, err = image.NewFunctions(l.sunkKernels()...); err != nil {
		return err
	}
	l.fns.Ran, l.fns.Log, l.fns.Warn = l.Settings.Tilings, l.Settings.Log, l.Settings.Warn
	l.placeValues()
	if l.size > 0 {
		if l.g.values, err = l.dev.Alloc(l.size); err != nil {
			return err
		}
	}
	for i := range l.Segments {
		if l.Segments[i].List != nil {
			if err := l.segment(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// sunkKernels lists the kernels that are tiled on the device.
func (l *loading) sunkKernels() []*kernel.Kernel {
	var out []*kernel.Kernel
	for i := range l.Nodes {
		if l.Marks[i].Sunk {
			out = append(out, l.Nodes[i].Kernel)
		}
	}
	return out
}

// placeValues gives the host data of every input that a tiling on the device
// reads a place in the block of values.
func (l *loading) placeValues() {
	for i := range l.Nodes {
		if !l.Marks[i].Sunk {
			continue
		}
		for _, v := range l.Nodes[i].Values {
			if v.made() {
				continue
			}
			w := l.g.window(v.Input)
			if w == nil {
				l.g.windows = append(l.g.windows, window{input: v.Input})
				w = &l.g.windows[len(l.g.windows)-1]
			}
			w.size = max(w.size, v.Off+v.Size)
		}
	}
	for i := range l.g.windows {
		w := &l.g.windows[i]
		w.at = l.size
		l.size = (l.size + w.size + valueAlign - 1) / valueAlign * valueAlign
	}
}

// segment loads a captured segment.
func (l *loading) segment(i int) error {
	seg, x := &l.Segments[i], &l.g.parts[i]
	ops := map[int64]*load.Operation{}
	for j := seg.First; j <= seg.Last; j++ {
		o, err := l.operation(j)
		if err != nil {
			return err
		}
		ops[int64(j)] = o
		x.kernels += int64(len(o.Kernels))
		if l.Marks[j].Sunk {
			l.reads(x, &l.Nodes[j])
		}
	}
	for j := range seg.List.Tasks {
		if t := &seg.List.Tasks[j]; t.Kind == sink.SuperKernelTask {
			ops[t.Op] = &load.Operation{Label: &device.Label{Op: l.Settings.Name, Node: "super kernel"}}
		}
	}
	made, err := load.List(l.Settings.Name, seg.List, ops, l.fns, l.Settings.Machine, l.dev.Alloc)
	if err != nil {
		return err
	}
	x.memory, x.first, x.list = made.Memory, made.Writes, made.List
	if x.model, err = l.dev.Load(made.List); err != nil {
		return err
	}
	x.start()
	return nil
}

// reads notes the windows of values that a tiling of the part reads.
func (l *loading) reads(x *part, n *Node) {
	for _, v := range n.Values {
		if v.made() {
			continue
		}
		at := 0
		for l.g.windows[at].input != v.Input {
			at++
		}
		for _, have := range x.reads {
			if have == at {
				at = -1
				break
			}
		}
		if at >= 0 {
			x.reads = append(x.reads, at)
		}
	}
}

// operation is what the tasks of node i become.
func (l *loading) operation(i int) (*load.Operation, error) {
	n, b := &l.Nodes[i], l.Before[i]
	if n.Kernel == nil {
		return &load.Operation{Label: n.Label}, nil
	}
	o := &load.Operation{Label: n.Label, Kernels: []device.Kernel{{
		Program: n.Kernel.Program(), Blocks: int(b.BlockDim), Key: b.Key,
		Operands: n.Operands, Inputs: n.Inputs, Scratch: n.Scratch, Inline: b.Data,
	}}}
	if !l.Marks[i].Sunk {
		return o, nil
	}
	spec, err := image.FromKernel(n.Label.Node, n.Kernel, n.Problem)
	if err != nil {
		return nil, err
	}
	spec.Deterministic = true // no result of this library depends on scheduling
	o.Sunk = &load.Sunk{Spec: spec, DataBytes: int64(len(b.Data)), Binary: binary(n.Kernel), Log: n.Log, Deadline: l.Settings.Deadline}
	for j, v := range n.Values {
		switch {
		case n.Problem.Val[j].Empty():
		case v.made():
			o.Sunk.Values = append(o.Sunk.Values, v.Made)
		default:
			w := l.g.window(v.Input)
			o.Sunk.Values = append(o.Sunk.Values, device.Absolute(l.g.values.At(w.at+v.Off, v.Size)))
		}
	}
	return o, nil
}

// binary is the table of a kernel's variants.
func binary(k *kernel.Kernel) *device.Binary {
	b := &device.Binary{Name: k.Name()}
	for key := range k.Keys() {
		b.Variants = append(b.Variants, device.Variant{Key: uint64(key), Program: k.Program()})
	}
	return b
}
