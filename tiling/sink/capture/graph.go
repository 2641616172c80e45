package capture

import (
	"errors"

	"goatb/device"
	"goatb/status"
)

// Graph is a plan loaded into a device. It belongs to one goroutine at a time.
type Graph struct {
	Plan *Plan

	dev     device.ModelDevice
	parts   []part
	values  device.Buffer // the block of values
	windows []window
}

// part is a loaded segment.
type part struct {
	model   device.Model
	list    *device.TaskList
	memory  device.Buffer
	kernels int64
	// first is what the first execution stores besides its values.
	first []device.Write
	// reads are the windows of values that tilings read.
	reads   []int
	refresh device.Refresh
	// used says which inputs, outputs and workspaces the list names, and sent
	// where they were in the last execution that was enqueued, of version
	// `version` of the addresses.
	used    device.Extents
	sent    [device.WorkspaceMemory + 1][]device.Buffer
	version uint64
}

// start prepares the first execution.
func (x *part) start() {
	x.used = x.list.Extents()
	n := 0
	for t := range x.sent {
		x.sent[t] = make([]device.Buffer, len(x.used.Of(device.MemoryType(t))))
		n += len(x.sent[t])
	}
	x.refresh.Moves = make([]device.Relocation, 0, n)
	x.refresh.Writes = make([]device.Write, 0, len(x.first)+len(x.reads))
}

// window returns the place of an input's host data, nil for an input that no
// tiling reads.
func (g *Graph) window(input int) *window {
	for i := range g.windows {
		if g.windows[i].input == input {
			return &g.windows[i]
		}
	}
	return nil
}

// Bound is the memory of an execution.
type Bound struct {
	In, Out   []device.Buffer
	Workspace device.Buffer
	// Host is the host data of the inputs, nil where there are none.
	Host [][]byte
	// Version changes whenever addresses do; it is never 0.
	Version uint64
}

// Replay enqueues an execution of segment i, which is captured, on a stream, and
// returns the bytes of tilings and values that the host moved. It copies the host
// data. Errors: ErrInvalidTensorAddr for host data that are missing, and those of
// device.Model.Replay; then nothing was enqueued.
func (g *Graph) Replay(i int, on device.Stream, b *Bound) (moved int64, err error) {
	x := &g.parts[i]
	r := &x.refresh
	r.Moves = r.Moves[:0]
	if x.version != b.Version {
		x.move(b)
	}
	r.Writes = append(r.Writes[:0], x.first...)
	for _, w := range x.reads {
		v := &g.windows[w]
		host := b.Host[v.input]
		if int64(len(host)) < v.size {
			return 0, status.Errorf(status.ErrInvalidTensorAddr, "input %d: want %d bytes of host data that tilings read, got %d", v.input, v.size, len(host))
		}
		r.Writes = append(r.Writes, device.Write{To: device.Absolute(g.values.At(v.at, v.size)), Data: host[:v.size]})
	}
	for j := range r.Writes {
		moved += int64(len(r.Writes[j].Data))
	}
	err = x.model.Replay(on, r)
	for j := range r.Writes {
		r.Writes[j].Data = nil
	}
	if err != nil {
		return 0, err
	}
	for j := range r.Moves {
		m := &r.Moves[j]
		x.sent[m.Type][m.Index] = m.Buffer
	}
	x.version, x.first = b.Version, nil
	return moved, nil
}

// move lists what has moved since the last execution.
func (x *part) move(b *Bound) {
	for t := device.InputMemory; t <= device.WorkspaceMemory; t++ {
		for i, need := range x.used.Of(t) {
			if need < 0 {
				continue
			}
			if at := b.buffer(t, i); at != x.sent[t][i] {
				x.refresh.Moves = append(x.refresh.Moves, device.Relocation{Type: t, Index: i, Buffer: at})
			}
		}
	}
}

func (b *Bound) buffer(t device.MemoryType, i int) device.Buffer {
	switch t {
	case device.InputMemory:
		return b.In[i]
	case device.OutputMemory:
		return b.Out[i]
	}
	return b.Workspace
}

// Kernels returns the number of kernels in segment i.
func (g *Graph) Kernels(i int) int64 { return g.parts[i].kernels }

// Loaded returns the list of segment i, which is captured, as the device has it,
// and the states of its tasks, for tools: the list must not be changed.
func (g *Graph) Loaded(i int) (*device.TaskList, []device.TaskState) {
	x := &g.parts[i]
	return x.list, x.model.States(nil)
}

// Done reports whether every execution enqueued so far is done: then Close does
// not wait.
func (g *Graph) Done() bool {
	for i := range g.parts {
		if m := g.parts[i].model; m != nil && !m.Query() {
			return false
		}
	}
	return true
}

// Close waits for the executions and gives everything back.
func (g *Graph) Close() error {
	var errs []error
	for i := range g.parts {
		x := &g.parts[i]
		if x.model != nil {
			errs = append(errs, x.model.Unload())
			x.model = nil
		}
		errs = append(errs, g.free(&x.memory))
	}
	return errors.Join(append(errs, g.free(&g.values))...)
}

// free gives memory back that is there; the memory of a closed device is gone.
func (g *Graph) free(b *device.Buffer) error {
	m := *b
	*b = device.Buffer{}
	if !m.Live() {
		return nil
	}
	return g.dev.Free(m)
}
