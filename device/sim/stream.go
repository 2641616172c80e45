package sim

import (
	"context"
	"math"

	"goatb/device"
	"goatb/status"
)

// Stream is a stream of the simulated device. Its launch queue holds the tasks
// that are not done at the host's time.
type Stream struct {
	dev   *Device
	inner device.Stream
	id    int
	lane  bool // of a model: it has no inner stream

	// Guarded by the device's mu.
	queue  []*task // from at on
	at     int
	booked int64 // tasks so far
	done   int64
	last   int64   // end of the last task that is done
	begins []int64 // when the latest tasks began, a ring of the prefetch depth
	begun  int64
	stats  device.StreamStats
	closed bool
}

func (s *Stream) head() *task { return s.queue[s.at] }
func (s *Stream) length() int { return len(s.queue) - s.at }

// drop takes the head off the queue.
func (s *Stream) drop() {
	s.queue[s.at] = nil
	s.at++
	if s.at == len(s.queue) {
		s.queue, s.at = s.queue[:0], 0
	} else if s.at > 1024 && s.at > len(s.queue)/2 {
		n := copy(s.queue, s.queue[s.at:])
		clear(s.queue[n:])
		s.queue, s.at = s.queue[:n], 0
	}
}

// began notes when a task began, for the fetch of later ones.
func (s *Stream) began(now int64, prefetch int) {
	if len(s.begins) != prefetch {
		s.begins, s.begun = make([]int64, prefetch), 0
	}
	if prefetch > 0 {
		s.begins[s.begun%int64(prefetch)] = now
	}
	s.begun++
}

// fetched returns when the queue entry of the head task could be fetched: when
// the entry began that lies the prefetch depth before it.
func (s *Stream) fetched() int64 {
	n := int64(s.dev.costs.Prefetch)
	switch {
	case n == 0:
		return s.last
	case s.begun < n || int64(len(s.begins)) != n:
		return math.MinInt32 // as soon as it is there
	}
	return s.begins[s.begun%n]
}

// Usable says why nothing can be enqueued for the device that p describes.
func (s *Stream) Usable(p *device.Props) error {
	if err := s.exists(); err != nil {
		return err
	}
	if p != &s.dev.props {
		return status.Errorf(status.ErrInvalidStream, "want a stream of the same device, got one of another")
	}
	if b, ok := s.inner.(device.BoundStream); ok {
		return b.Usable(s.dev.inner.Props())
	}
	return nil
}

// exists refuses a stream that NewStream has not made.
func (s *Stream) exists() error {
	if s != nil && s.dev != nil {
		return nil
	}
	return status.Unmade(status.ErrInvalidStream, "Stream", s == nil, "make one with NewStream")
}

// Launch enqueues a kernel.
func (s *Stream) Launch(l *device.Launch) error {
	if err := s.exists(); err != nil {
		return err
	}
	if l == nil || l.Program == nil || l.Program.Run == nil {
		return s.inner.Launch(l)
	}
	d, c := s.dev, &s.dev.costs
	t := s.enter(launchTask)
	defer d.work.Unlock()
	t.program, t.label, t.blocks, t.inputs = l.Program, l.Label, l.Blocks, l.Inputs
	t.stand.Name = l.Program.Name
	t.bufs = append(t.bufs, l.Buffers...)
	t.launch = *l
	t.launch.Program = &t.stand
	err := d.hollow(&t.launch)
	if err == nil {
		err = s.inner.Launch(&t.launch)
	}
	t.launch = device.Launch{}
	if err != nil {
		return s.refuse(t, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.stats.Launches++
	t.pool, t.units = &d.engine.cores, min(max(t.blocks, 1), int(c.Cores))
	s.book(t, "launch", l.Program.Name, c.LaunchHost+c.LaunchPerKiB*float64(len(l.Inline))/1024)
	return nil
}

// hollow takes operands off a launch that the inner device could not address,
// once they are checked.
func (d *Device) hollow(l *device.Launch) error {
	if d.numerics {
		return nil
	}
	if l.Inputs < 0 || l.Inputs > len(l.Buffers) {
		return nil // refused by the inner device
	}
	for i := range l.Buffers {
		if p := unusable(l.Buffers[i]); p != "" {
			return l.Label.Place(status.Errorf(status.ErrInvalidTensorAddr, "want live memory for operand %d, got %s", i, p))
		}
	}
	if p := unusable(l.Scratch); p != "" {
		return l.Label.Place(status.Errorf(status.ErrInvalidTensorAddr, "want live memory for scratch, got %s", p))
	}
	l.Buffers, l.Inputs, l.Scratch = nil, 0, device.Buffer{}
	return nil
}

// Copy enqueues a copy.
func (s *Stream) Copy(dst, src device.Buffer) error {
	if err := s.exists(); err != nil {
		return err
	}
	d := s.dev
	t := s.enter(copyTask)
	defer d.work.Unlock()
	if err := s.moveBytes(t, dst, src); err != nil {
		return s.refuse(t, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.stats.Copies++
	s.stats.CopiedBytes += dst.Size()
	t.bytes, t.units = dst.Size(), 1
	t.pool, t.rate = d.route(dst, src)
	t.bufs = append(t.bufs, dst)
	s.book(t, "copy", "", d.costs.CopyHost)
	return nil
}

// moveBytes does a copy, or stands in for one of memory without bytes.
func (s *Stream) moveBytes(t *task, dst, src device.Buffer) error {
	hollow := func(b device.Buffer) bool {
		return b.Allocation() != nil && b.Size() > 0 && b.Allocation().Memory() == nil
	}
	if dst.Size() != src.Size() || !hollow(dst) && !hollow(src) {
		return s.inner.Copy(dst, src)
	}
	for _, end := range [...]struct {
		name string
		buf  device.Buffer
	}{{"destination", dst}, {"source", src}} {
		p := unusable(end.buf)
		if end.buf.IsNil() {
			p = "no memory"
		}
		if p != "" {
			return status.Errorf(status.ErrInvalidTensorAddr, "want live memory for a copy's %s, got %s", end.name, p)
		}
	}
	t.program = &nothing
	t.stand.Name = nothing.Name
	return s.inner.Launch(&device.Launch{Program: &t.stand, Blocks: 1})
}

// nothing stands in for a copy of memory without bytes.
var nothing = device.Program{Name: "copy", Run: func(*device.Args, int) error { return nil }}

// Record enqueues e.
func (s *Stream) Record(e device.Event) error {
	ev, err := s.own(e)
	if err != nil {
		return err
	}
	return s.order(recordTask, ev, s.inner.Record, (*Event).record, "record", s.dev.costs.RecordHost)
}

// Wait makes later work wait for e.
func (s *Stream) Wait(e device.Event) error {
	ev, err := s.own(e)
	if err != nil {
		return err
	}
	return s.order(waitTask, ev, s.inner.Wait, (*Event).target, "wait", s.dev.costs.WaitHost)
}

// order enqueues a record or a wait.
func (s *Stream) order(k kind, e *Event, call func(device.Event) error, mark func(*Event) *mark, name string, cost float64) error {
	d := s.dev
	t := s.enter(k)
	defer d.work.Unlock()
	if err := call(e.inner); err != nil {
		return s.refuse(t, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	t.mark = mark(e)
	s.book(t, "event", name, cost)
	return nil
}

// Reset forgets e's records.
func (s *Stream) Reset(e device.Event) error {
	ev, err := s.own(e)
	if err != nil {
		return err
	}
	s.dev.work.Lock()
	defer s.dev.work.Unlock()
	if err := s.inner.Reset(ev.inner); err != nil {
		return err
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	ev.forget()
	return nil
}

// own returns e as an event of this stream's device.
func (s *Stream) own(e device.Event) (*Event, error) {
	if err := s.exists(); err != nil {
		return nil, err
	}
	ev, ok := e.(*Event)
	if !ok || ev == nil || ev.dev != s.dev {
		return nil, status.Errorf(status.ErrInvalidParam, "want an event of this device, got %T", e)
	}
	return ev, nil
}

// enter waits for room in the launch queue, takes a task and the device's work
// lock, which the caller unlocks.
func (s *Stream) enter(k kind) *task {
	t := s.room(k)
	s.dev.work.Lock()
	return t
}

// room waits for room in the launch queue and takes a task.
func (s *Stream) room(k kind) *task {
	d := s.dev
	d.mu.Lock()
	stalled := false
	for {
		d.engine.advance(d.host.now)
		if s.length() < d.props.QueueDepth || s.closed || d.closed {
			break
		}
		if !stalled {
			stalled = true
			s.stats.QueueStalls++
		}
		if !d.engine.step() {
			d.booked.Wait()
		}
		d.waited("queue", "", d.engine.now)
	}
	t := d.newTask(s, k)
	d.mu.Unlock()
	return t
}

// refuse gives back a task that was not enqueued.
func (s *Stream) refuse(t *task, err error) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.dev.reuse(t)
	return err
}

// book charges the host for a call and puts its task into the launch queue; mu
// is held.
func (s *Stream) book(t *task, category, name string, cost float64) {
	d := s.dev
	d.charge(category, name, cost)
	t.enq = d.host.now
	d.engine.advance(d.host.now)
	d.engine.book(t)
	s.booked++
	s.stats.DepthMax = max(s.stats.DepthMax, int64(s.length()))
	d.booked.Broadcast()
}

// Synchronize waits for everything enqueued so far and takes the first error.
func (s *Stream) Synchronize(ctx context.Context) error {
	if err := s.exists(); err != nil {
		return err
	}
	if err := status.Given("synchronize", "ctx", ctx); err != nil {
		return err
	}
	d := s.dev
	d.mu.Lock()
	target := s.booked
	d.mu.Unlock()
	err := s.inner.Synchronize(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.await(func() bool { return s.done >= target })
	d.charge("sync", "", d.costs.SyncHost)
	return err
}

// await moves the host's clock on until something has happened; mu is held.
func (d *Device) await(happened func() bool) {
	d.engine.advance(d.host.now)
	for !happened() && !d.closed {
		if !d.engine.step() {
			d.booked.Wait()
		}
	}
	d.waited("wait", "", d.engine.now)
}

// Query reports whether everything enqueued so far is done.
func (s *Stream) Query() bool {
	if s.exists() != nil {
		return true
	}
	d := s.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.closed || d.closed {
		return s.inner.Query()
	}
	d.charge("query", "", d.costs.QueryHost)
	d.engine.advance(d.host.now)
	return s.length() == 0
}

// Stats returns counters.
func (s *Stream) Stats() device.StreamStats {
	if s.exists() != nil {
		return device.StreamStats{}
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	return s.stats
}

// Close waits for the work, ends the stream and returns the first error that
// nobody took.
func (s *Stream) Close() error {
	if s.exists() != nil {
		return nil
	}
	d := s.dev
	err := s.inner.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	s.closed = true
	d.booked.Broadcast()
	d.await(func() bool { return s.length() == 0 })
	return err
}
