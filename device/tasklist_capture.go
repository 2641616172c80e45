package device

import (
	"context"
	"slices"
	"sync"

	"goatb/status"
)

// Capture records what is enqueued on its streams as a TaskList instead of
// running it. Memory that was declared as an input, an output or a workspace
// becomes a refreshing word of the address table, all other memory an absolute
// one. A Capture may be used from any goroutine; it is over with Finish.
type Capture struct {
	can Limits

	mu      sync.Mutex
	list    TaskList
	bases   []Relocation
	streams []*CaptureStream
	events  map[Event]*capturedEvent
	records []*capturedRecord // of which the places move when a task is inserted
	over    bool
}

// NewCapture begins a capture for a device with the given limits.
func NewCapture(name string, can Limits) *Capture {
	return &Capture{can: can, list: TaskList{Name: name}, events: map[Event]*capturedEvent{}}
}

// Declare makes b refresh: operands inside it become windows of the given input,
// output or workspace. Where declared memory overlaps, what is written is an
// output first and what is read an input first.
func (c *Capture) Declare(t MemoryType, index int, b Buffer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bases = append(c.bases, Relocation{Type: t, Index: index, Buffer: b})
}

// Stream binds a new stream to the model and returns what captures its work.
func (c *Capture) Stream(name string) *CaptureStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &CaptureStream{capture: c, id: c.list.Bind(name)}
	c.streams = append(c.streams, s)
	return s
}

// Finish ends the capture and returns the list. Errors: ErrInvalidGraph when a
// captured stream waits for a record that was not captured, and those of
// TaskList.Check.
func (c *Capture) Finish() (*TaskList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, errCaptureOver()
	}
	c.over = true
	if err := c.list.Check(c.can); err != nil {
		return nil, err
	}
	return &c.list, nil
}

func errCaptureOver() error {
	return status.Errorf(status.ErrInvalidStream, "want a capture that goes on, got a finished one")
}

// address returns the word for b.
func (c *Capture) address(b Buffer, write bool) (Address, error) {
	order := [...]MemoryType{InputMemory, WorkspaceMemory, OutputMemory}
	if write {
		order = [...]MemoryType{OutputMemory, WorkspaceMemory, InputMemory}
	}
	for _, t := range order {
		for _, base := range c.bases {
			if base.Type != t {
				continue
			}
			if off, inside := base.Buffer.find(b); inside {
				return Address{Type: t, Index: base.Index, Off: off, Size: b.size}, nil
			}
		}
	}
	for _, base := range c.bases {
		if base.Buffer.Overlaps(b) {
			return Address{}, status.Errorf(status.ErrInvalidParam, "want memory inside %s %d or apart from it, got a window of %d bytes across its end", base.Type, base.Index, b.size)
		}
	}
	return Absolute(b), nil
}

// find returns where window o lies in b, and false when it does not lie in it
// as a whole.
func (b Buffer) find(o Buffer) (int64, bool) {
	x, y, ok := b.starts(o)
	if !ok || y < x || y-x > uintptr(b.size) || o.size > b.size-int64(y-x) {
		return 0, false
	}
	return int64(y - x), true
}

// CaptureStream is a stream of a Capture. Launch, Copy, Record, Wait and Reset
// mean what they mean on any stream; nothing runs, so Synchronize is an error.
type CaptureStream struct {
	capture *Capture
	id      StreamID
	next    TaskID
	stats   StreamStats
}

// ID returns the stream's id in the list.
func (s *CaptureStream) ID() StreamID { return s.id }

// Add captures a task of any kind on this stream and returns its id.
func (s *CaptureStream) Add(t Task) (TaskID, error) {
	c := s.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, errCaptureOver()
	}
	return s.insert(len(c.list.Tasks), t), nil
}

// insert puts a task into the list at a place; the capture's mu is held.
func (s *CaptureStream) insert(at int, t Task) TaskID {
	c := s.capture
	t.Stream, t.ID = s.id, s.next
	s.next += TaskID(t.Kind.Entries())
	c.list.Tasks = slices.Insert(c.list.Tasks, at, t)
	for _, r := range c.records {
		if r.at >= at {
			r.at++
		}
	}
	return t.ID
}

// Launch captures a kernel.
func (s *CaptureStream) Launch(l *Launch) error {
	if l == nil {
		return null("a launch")
	}
	_, err := s.LaunchAll([]Launch{*l})
	return err
}

// LaunchAll captures kernels and returns how many before the first error.
func (s *CaptureStream) LaunchAll(ls []Launch) (int, error) {
	c := s.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, errCaptureOver()
	}
	for i := range ls {
		k, err := c.kernel(&ls[i])
		if err != nil {
			return i, ls[i].Label.Place(err)
		}
		s.insert(len(c.list.Tasks), Task{Kind: KernelTask, Label: ls[i].Label, Kernel: k})
		s.stats.Launches++
	}
	return len(ls), nil
}

// kernel makes a task's kernel from a launch.
func (c *Capture) kernel(l *Launch) (*Kernel, error) {
	k := &Kernel{Program: l.Program, Blocks: l.Blocks, Key: l.Key, Inputs: l.Inputs, Operands: make([]Address, len(l.Buffers))}
	var err error
	for i, b := range l.Buffers {
		if k.Operands[i], err = c.address(b, i >= l.Inputs); err != nil {
			return nil, err
		}
	}
	if k.Scratch, err = c.address(l.Scratch, true); err != nil {
		return nil, err
	}
	if l.Inline != nil {
		k.Inline = append([]byte{}, l.Inline...)
		return k, nil
	}
	k.Tiling, err = c.address(l.Tiling, false)
	return k, err
}

// Copy captures a copy.
func (s *CaptureStream) Copy(dst, src Buffer) error {
	c := s.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errCaptureOver()
	}
	to, err := c.address(dst, true)
	if err != nil {
		return err
	}
	from, err := c.address(src, false)
	if err != nil {
		return err
	}
	pair := &CopyAddresses{Dst: to, Src: from}
	if err := checkCopy(pair); err != nil {
		return err
	}
	s.insert(len(c.list.Tasks), Task{Kind: CopyTask, Copy: pair})
	s.stats.Copies++
	s.stats.CopiedBytes += dst.size
	return nil
}

// Synchronize is an error: a captured stream runs nothing.
func (s *CaptureStream) Synchronize(context.Context) error {
	return status.Errorf(status.ErrInvalidStream, "want a stream that runs its work, got one that is captured")
}

// Query reports whether the captured work is done: it never is.
func (s *CaptureStream) Query() bool { return false }

// Stats counts captured work.
func (s *CaptureStream) Stats() StreamStats {
	s.capture.mu.Lock()
	defer s.capture.mu.Unlock()
	return s.stats
}

// Close does nothing; the stream belongs to the capture.
func (s *CaptureStream) Close() error { return nil }

// TaskUpdate captures an update on stream `on` of task `task` of stream target.
// It is allowed only in a model. Errors, in this order: FaultNull for a missing
// stream, address or table, FaultNotSupported, FaultStreamModel for a stream that
// is not captured into one model with the other, FaultProgramSize for a table
// without variants, FaultNotLaunched.
func TaskUpdate(on, target Stream, task TaskID, p Patch, label *Label) error {
	if target == nil || on == nil {
		return null("a target stream and a stream to update on")
	}
	if err := p.checkNull(); err != nil {
		return err
	}
	s, captured := on.(*CaptureStream)
	to, both := target.(*CaptureStream)
	if captured && !s.capture.can.TaskUpdate {
		return errNoUpdate()
	}
	if !captured || !both || s.capture != to.capture {
		return status.Errorf(status.ErrInvalidStream, "%w: want two streams of one capture", FaultStreamModel)
	}
	c := s.capture
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return errCaptureOver()
	}
	if err := p.checkTable(); err != nil {
		return err
	}
	launched := func(t Task) bool { return t.Stream == to.id && t.ID == task }
	if !slices.ContainsFunc(c.list.Tasks, launched) {
		return errNotLaunched(to.id, task)
	}
	s.insert(len(c.list.Tasks), Task{Kind: UpdateTask, Label: label, Update: &Update{Target: to.id, Task: task, Patch: p}})
	return nil
}
