package cpu

import (
	"context"
	"sync"
	"sync/atomic"

	"goatb/device"
	"goatb/internal/workpool"
	"goatb/status"
)

// maxBlocks is the largest block dim.
const maxBlocks = workpool.MaxBlocks

// Stream is a queue of the CPU device; see device.Stream for its contract.
//
// The queue is a ring of slots between the enqueuer and the runner. Slots
// [head, tail) hold tasks that are not done. Only an enqueuer moves tail, under
// put; only the runner moves head. The runner is the stream's goroutine or, on
// an inline device, whoever holds running.
type Stream struct {
	dev   *Device
	id    int
	depth uint64
	mask  uint64
	slots []task

	// The enqueuer's side, guarded by put.
	put      sync.Mutex
	space    *sync.Cond // signalled when a full queue has drained somewhat
	headSeen uint64
	operands arena[device.Buffer]
	tilings  arena[byte]
	stats    device.StreamStats
	shut     bool
	swept    uint64 // tail at the last sweep
	running  bool   // inline device: somebody runs the tasks

	_    [64]byte
	tail atomic.Uint64
	_    [64]byte
	head atomic.Uint64
	_    [64]byte

	// attention counts watches, and one for stalled, so that the runner has one
	// word to look at after each task.
	attention atomic.Int64
	stalled   atomic.Bool // an enqueuer sleeps; changed under put
	depthMax  atomic.Int64
	failure   atomic.Pointer[failure]
	closing   atomic.Bool
	over      atomic.Bool // closed and drained

	watchMu sync.Mutex
	watches []watch
	ended   chan struct{} // closed with over

	work *workpool.Parker // the runner sleeps here for lack of tasks
	gate gate
	run  runState
}

type failure struct{ err error }

func newStream(d *Device, id int) *Stream {
	n := uint64(1)
	for n < uint64(d.cfg.depth) {
		n *= 2
	}
	s := &Stream{
		dev: d, id: id, depth: uint64(d.cfg.depth), mask: n - 1, slots: make([]task, n),
		ended: make(chan struct{}), work: workpool.NewParker(),
	}
	s.space = sync.NewCond(&s.put)
	s.gate.sleep = workpool.NewParker()
	if !d.cfg.inline {
		s.run.job = d.pool.NewJob(s.runBlocks)
	}
	return s
}

// Launch enqueues a kernel.
func (s *Stream) Launch(l *device.Launch) error {
	s.put.Lock()
	t, err := s.slot(func() error { return checkLaunch(l) })
	if err != nil {
		s.put.Unlock()
		return err
	}
	index := s.tail.Load()
	t.kind, t.prog, t.blocks, t.key, t.label = launchTask, l.Program, l.Blocks, l.Key, l.Label
	t.a, t.b, t.inline = l.Scratch, l.Tiling, l.Inline != nil
	t.bufsAt, t.dataAt = s.operands.next, s.tilings.next
	t.bufs = s.takeOperands(t, len(l.Buffers), index)
	copy(t.bufs, l.Buffers)
	if t.inline {
		t.data = s.takeTiling(t, len(l.Inline), index)
		copy(t.data, l.Inline)
	}
	s.stats.Launches++
	s.publish(index)
	return nil
}

// Copy enqueues a copy.
func (s *Stream) Copy(dst, src device.Buffer) error {
	s.put.Lock()
	t, err := s.slot(func() error { return checkCopy(dst, src) })
	if err != nil {
		s.put.Unlock()
		return err
	}
	t.kind, t.a, t.b = copyTask, dst, src
	s.stats.Copies++
	s.stats.CopiedBytes += dst.Size()
	s.enqueue(t)
	return nil
}

// Record enqueues e.
func (s *Stream) Record(e device.Event) error {
	ev, err := s.own(e)
	if err != nil {
		return err
	}
	s.put.Lock()
	t, err := s.slot(nil)
	if err == nil {
		var gen uint64
		if gen, err = ev.record(); err == nil {
			t.kind, t.event, t.gen = recordTask, ev, gen
			s.enqueue(t)
			return nil
		}
	}
	s.put.Unlock()
	return err
}

// Wait makes later work wait for e.
func (s *Stream) Wait(e device.Event) error {
	ev, err := s.own(e)
	if err != nil {
		return err
	}
	s.put.Lock()
	t, err := s.slot(nil)
	if err == nil {
		var gen uint64
		if gen, err = ev.target(); err == nil {
			t.kind, t.event, t.gen = waitTask, ev, gen
			s.enqueue(t)
			return nil
		}
	}
	s.put.Unlock()
	return err
}

// Reset forgets e's records.
func (s *Stream) Reset(e device.Event) error {
	ev, err := s.own(e)
	if err != nil {
		return err
	}
	s.put.Lock()
	defer s.put.Unlock()
	if s.shut {
		return errStreamClosed()
	}
	return ev.forget()
}

// own returns e as an event of this stream's device.
func (s *Stream) own(e device.Event) (*Event, error) {
	ev, ok := e.(*Event)
	if !ok || ev == nil || ev.dev != s.dev {
		return nil, status.Errorf(status.ErrInvalidParam, "want an event of this device, got %T", e)
	}
	return ev, nil
}

// slot returns the next free slot once check, if any, is content; put is held. A full
// queue waits and asks check again: memory may have been freed meanwhile.
func (s *Stream) slot(check func() error) (*task, error) {
	for {
		if s.shut {
			return nil, errStreamClosed()
		}
		if check != nil {
			if err := check(); err != nil {
				return nil, err
			}
		}
		tail := s.tail.Load()
		if tail-s.headSeen >= s.depth {
			s.headSeen = s.head.Load()
		}
		if tail-s.headSeen < s.depth {
			return &s.slots[tail&s.mask], nil
		}
		s.stall(tail)
	}
}

// stall waits until the queue has drained to its low mark, so that a full
// queue does not wake the enqueuer for every single task.
func (s *Stream) stall(tail uint64) {
	s.stats.QueueStalls++
	s.noteDepth(int64(s.depth))
	full := func() bool { return !s.shut && tail == s.tail.Load() && tail-s.head.Load() > s.lowMark() }
	for full() {
		if !s.stalled.Swap(true) {
			s.attention.Add(1)
		}
		if full() {
			s.space.Wait()
		}
	}
}

func (s *Stream) lowMark() uint64 { return s.depth - max(s.depth/4, 1) }

// enqueue publishes a task that takes nothing from the arenas.
func (s *Stream) enqueue(t *task) {
	t.bufsAt, t.dataAt = s.operands.next, s.tilings.next
	s.publish(s.tail.Load())
}

// publish makes the slot at index visible to the runner, releases put and sees
// to it that somebody runs the task.
func (s *Stream) publish(index uint64) {
	s.tail.Store(index + 1)
	if s.dev.cfg.inline {
		s.drain()
		return
	}
	s.put.Unlock()
	s.work.Wake()
}

// takeOperands returns room for n buffers.
func (s *Stream) takeOperands(t *task, n int, index uint64) []device.Buffer {
	if n == 0 {
		return nil
	}
	a := &s.operands
	for range 2 {
		oldest := a.next
		if from := max(s.headSeen, a.base); from < index {
			oldest = s.slots[from&s.mask].bufsAt
		}
		if m := a.take(n, oldest); m != nil {
			return m
		}
		s.headSeen = s.head.Load()
	}
	a.grow(make([]device.Buffer, grown(len(a.mem), n, 256)), index)
	t.bufsAt = 0
	return a.take(n, 0)
}

// takeTiling returns room for n bytes at an aligned address.
func (s *Stream) takeTiling(t *task, n int, index uint64) []byte {
	a := &s.tilings
	room := max(n+tilingAlign-1, tilingAlign) &^ (tilingAlign - 1)
	for range 2 {
		oldest := a.next
		if from := max(s.headSeen, a.base); from < index {
			oldest = s.slots[from&s.mask].dataAt
		}
		if m := a.take(room, oldest); m != nil {
			return m[:n:n]
		}
		s.headSeen = s.head.Load()
	}
	a.grow(alignedBytes(grown(len(a.mem), room, 16<<10)), index)
	t.dataAt = 0
	return a.take(room, 0)[:n:n]
}

// Synchronize waits for everything enqueued so far and takes the first error.
func (s *Stream) Synchronize(ctx context.Context) error {
	closed := s.closing.Load()
	if err := s.reach(ctx, s.tail.Load()); err != nil {
		return err
	}
	if f := s.failure.Swap(nil); f != nil {
		return f.err
	}
	if closed {
		return errStreamClosed()
	}
	s.sweep()
	return nil
}

// sweep forgets the operands of finished launches, so that an idle stream does
// not keep Go memory alive.
func (s *Stream) sweep() {
	if !s.put.TryLock() {
		return
	}
	defer s.put.Unlock()
	tail := s.tail.Load()
	if tail == s.swept || s.head.Load() != tail {
		return
	}
	for i := max(s.swept, tail-min(tail, s.mask+1)); i < tail; i++ {
		t := &s.slots[i&s.mask]
		clear(t.bufs)
		t.bufs, t.a, t.b = nil, device.Buffer{}, device.Buffer{}
	}
	s.swept = tail
}

// Query reports whether everything enqueued so far is done.
func (s *Stream) Query() bool { return s.head.Load() >= s.tail.Load() }

// Stats returns counters.
func (s *Stream) Stats() device.StreamStats {
	s.put.Lock()
	defer s.put.Unlock()
	out := s.stats
	s.noteDepth(int64(s.tail.Load() - s.head.Load()))
	out.DepthMax = s.depthMax.Load()
	return out
}

// noteDepth raises the largest depth seen.
func (s *Stream) noteDepth(n int64) {
	for {
		old := s.depthMax.Load()
		if n <= old || s.depthMax.CompareAndSwap(old, n) {
			return
		}
	}
}

// Close waits for the work, ends the stream and returns the first error that
// nobody took.
func (s *Stream) Close() error {
	s.stop()
	<-s.ended
	s.dev.forgetStream(s)
	if f := s.failure.Swap(nil); f != nil {
		return f.err
	}
	return nil
}

// stop refuses further tasks and lets the runner end when it has drained the
// queue.
func (s *Stream) stop() {
	s.put.Lock()
	s.shut = true
	s.closing.Store(true)
	s.space.Broadcast()
	if s.dev.cfg.inline {
		s.drain()
		return
	}
	s.put.Unlock()
	s.work.Wake()
}

func errStreamClosed() error {
	return status.Errorf(status.ErrInvalidStream, "want an open stream, got a closed one")
}
