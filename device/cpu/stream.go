package cpu

import (
	"sync"
	"sync/atomic"
	"time"

	"goatb/device"
	"goatb/internal/workpool"
	"goatb/status"
)

// maxBlocks is the largest block dim.
const maxBlocks = workpool.MaxBlocks

// Stream is a queue of the CPU device; see device.Stream for its contract.
//
// The queue is a ring of slots between the enqueuer and the runner. Slots
// [head, tail) hold tasks that are not done, slots [tail, next) tasks that are
// written but not yet shown to the runner: whoever releases put has moved tail
// up to next. Only an enqueuer moves tail, under put; only the runner moves
// head. The runner is whoever has the turn: the stream's goroutine, which runs
// the tasks before due, or a host that runs what was held back for it; on an
// inline device, whoever holds running.
type Stream struct {
	// Read by both sides, never changed.
	dev   *Device
	id    int
	depth uint64
	mask  uint64
	slots []slot
	ended chan struct{}    // closed when the stream is over
	work  *workpool.Parker // the runner sleeps here for lack of tasks
	_     [cacheLine]byte

	// The enqueuer's side, guarded by put.
	put      sync.Mutex
	space    *sync.Cond // signalled when a full queue has drained somewhat
	next     uint64
	headSeen uint64
	operands arena[device.Buffer]
	tilings  arena[byte]
	stats    device.StreamStats
	shut     bool
	running  bool   // inline device: somebody runs the tasks
	swept    uint64 // tail at the last sweep
	holding  holding

	_     [cacheLine]byte
	syncs atomic.Uint64 // host goroutines that waited for the stream, so far
	_     [cacheLine]byte
	tail  atomic.Uint64
	due   atomic.Uint64 // tasks before it are for the stream's goroutine; at most tail
	first uint64        // the task of the first slot; changed under put while there are no tasks
	_     [cacheLine]byte
	turn  atomic.Bool // somebody runs tasks
	_     [cacheLine]byte
	head  atomic.Uint64
	_     [cacheLine]byte

	// attention counts watches, and one for stalled, so that the runner has one
	// word to look at after each task.
	attention atomic.Int64
	stalled   atomic.Bool // an enqueuer sleeps; changed under put
	closing   atomic.Bool
	over      atomic.Bool // closed and drained
	depthMax  atomic.Int64
	failure   atomic.Pointer[failure]
	watchMu   sync.Mutex
	watches   []watch
	_         [cacheLine]byte

	// The runner's side.
	gate gate
	run  runState
}

// cacheLine is the distance that keeps two processors out of each other's way:
// a line and the neighbour that is fetched with it.
const cacheLine = 128

type failure struct{ err error }

func newStream(d *Device, id int) *Stream {
	n := uint64(1)
	for n < uint64(d.cfg.depth) {
		n *= 2
	}
	s := &Stream{
		dev: d, id: id, depth: uint64(d.cfg.depth), mask: n - 1, slots: make([]slot, n),
		ended: make(chan struct{}), work: workpool.NewParker(),
	}
	s.space = sync.NewCond(&s.put)
	s.gate.sleep = workpool.NewParker()
	if !d.cfg.inline {
		s.run.job = d.pool.NewJob(s.runBlocks, s.fetchAhead)
	}
	return s
}

// slot returns the place of task i.
func (s *Stream) slot(i uint64) *slot { return &s.slots[(i-s.first)&s.mask] }

// Usable says why nothing can be enqueued for the device that p describes.
func (s *Stream) Usable(p *device.Props) error {
	if err := s.exists(); err != nil {
		return err
	}
	switch {
	case s.closing.Load():
		return errStreamClosed()
	case p != &s.dev.props:
		return status.Errorf(status.ErrInvalidStream, "want a stream of the same device, got one of another")
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
	s.put.Lock()
	if err := s.write(l); err != nil {
		s.put.Unlock()
		return err
	}
	s.publish()
	return nil
}

// LaunchAll enqueues kernels under one lock and shows them to the runner at
// once.
func (s *Stream) LaunchAll(ls []device.Launch) (int, error) {
	if err := s.exists(); err != nil {
		return 0, err
	}
	s.put.Lock()
	for i := range ls {
		if err := s.write(&ls[i]); err != nil {
			s.publish()
			return i, err
		}
	}
	s.publish()
	return len(ls), nil
}

// write puts a kernel into the next slot; put is held.
func (s *Stream) write(l *device.Launch) error {
	t, err := s.nextSlot(func() error { return checkLaunch(l) })
	if err != nil {
		return err
	}
	t.kind, t.prog, t.blocks, t.key, t.label = launchTask, l.Program, l.Blocks, l.Key, l.Label
	t.a, t.b, t.inline = l.Scratch, l.Tiling, l.Inline != nil
	t.bufsAt, t.dataAt = s.operands.next, s.tilings.next
	t.bufs = s.takeOperands(t, len(l.Buffers))
	copy(t.bufs, l.Buffers)
	if t.inline {
		t.data = s.takeTiling(t, len(l.Inline))
		copy(t.data, l.Inline)
	}
	s.stats.Launches++
	s.next++
	return nil
}

// Copy enqueues a copy.
func (s *Stream) Copy(dst, src device.Buffer) error {
	if err := s.exists(); err != nil {
		return err
	}
	s.put.Lock()
	t, err := s.nextSlot(func() error { return checkCopy(dst, src) })
	if err != nil {
		s.put.Unlock()
		return err
	}
	t.kind, t.a, t.b = copyTask, dst, src
	s.holding.light = dst.Size() <= lightBytes
	s.stats.Copies++
	s.stats.CopiedBytes += dst.Size()
	s.enqueue(t)
	return nil
}

// Record enqueues e.
func (s *Stream) Record(e device.Event) error { return s.putEvent(e, recordTask, (*Event).record) }

// Wait makes later work wait for e.
func (s *Stream) Wait(e device.Event) error { return s.putEvent(e, waitTask, (*Event).target) }

// putEvent enqueues a record or a wait of the generation of e that gen takes.
func (s *Stream) putEvent(e device.Event, kind taskKind, gen func(*Event, *Stream) (uint64, error)) error {
	ev, err := s.own(e)
	if err != nil {
		return err
	}
	s.put.Lock()
	t, err := s.nextSlot(nil)
	if err == nil {
		var g uint64
		if g, err = gen(ev, s); err == nil {
			t.kind, t.event, t.gen = kind, ev, g
			s.holding.light = kind == recordTask && ev.unawaited(g) || kind == waitTask && ev.soon(g)
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
	if err := s.exists(); err != nil {
		return nil, err
	}
	ev, ok := e.(*Event)
	if !ok || ev == nil || ev.dev != s.dev {
		return nil, status.Errorf(status.ErrInvalidParam, "want an event of this device, got %T", e)
	}
	return ev, nil
}

// nextSlot returns the next free slot once check, if any, is content; put is
// held. A full queue waits and asks check again: memory may have been freed
// meanwhile.
func (s *Stream) nextSlot(check func() error) (*task, error) {
	for {
		if s.shut {
			return nil, errStreamClosed()
		}
		if check != nil {
			if err := check(); err != nil {
				return nil, err
			}
		}
		if s.next-s.headSeen >= s.depth {
			s.headSeen = s.head.Load()
		}
		if s.next-s.headSeen < s.depth {
			t := &s.slot(s.next).task
			if s.dev.cfg.observe != nil {
				t.enqueued = time.Now()
			}
			return t, nil
		}
		if s.next != s.tail.Load() {
			s.publish()
			s.put.Lock()
			continue
		}
		s.stall(s.next)
	}
}

// stall waits until the queue has drained to its low mark, so that a full
// queue does not wake the enqueuer for every single task.
func (s *Stream) stall(tail uint64) {
	s.stats.QueueStalls++
	s.noteDepth(int64(s.depth))
	s.kick()
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
	s.next++
	s.publish()
}

// publish shows the written slots to the runner, releases put and sees to it
// that somebody runs the tasks.
func (s *Stream) publish() {
	held := s.holdsBack()
	s.tail.Store(s.next)
	if !held {
		s.due.Store(s.next)
	}
	if s.dev.cfg.inline {
		s.drain()
		return
	}
	s.put.Unlock()
	if !held {
		s.work.Wake()
	}
}

// takeOperands returns room for n buffers.
func (s *Stream) takeOperands(t *task, n int) []device.Buffer {
	if n == 0 {
		return nil
	}
	a := &s.operands
	room := (n + operandGrain - 1) &^ (operandGrain - 1)
	for range 2 {
		oldest := a.next
		if from := max(s.headSeen, a.base); from < s.next {
			oldest = s.slot(from).bufsAt
		}
		if m := a.take(room, oldest); m != nil {
			return m[:n:n]
		}
		s.headSeen = s.head.Load()
	}
	a.grow(make([]device.Buffer, grown(len(a.mem), room, 1024)), s.next)
	t.bufsAt = 0
	return a.take(room, 0)[:n:n]
}

// takeTiling returns room for n bytes at an aligned address.
func (s *Stream) takeTiling(t *task, n int) []byte {
	a := &s.tilings
	room := max(n+tilingAlign-1, tilingAlign) &^ (tilingAlign - 1)
	for range 2 {
		oldest := a.next
		if from := max(s.headSeen, a.base); from < s.next {
			oldest = s.slot(from).dataAt
		}
		if m := a.take(room, oldest); m != nil {
			return m[:n:n]
		}
		s.headSeen = s.head.Load()
	}
	a.grow(alignedBytes(grown(len(a.mem), room, 16<<10)), s.next)
	t.dataAt = 0
	return a.take(room, 0)[:n:n]
}

// stop refuses further tasks and lets the runner end when it has drained the
// queue.
func (s *Stream) stop() {
	s.put.Lock()
	s.shut = true
	s.due.Store(s.next)
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
