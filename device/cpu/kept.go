package cpu

import (
	"sync/atomic"
	"time"

	"goatb/device"
	"goatb/status"
)

// kept is device.Kept of a stream.
type kept struct {
	s        *Stream
	launches []keptLaunch
	until    uint64 // the task behind the last run that was enqueued
	checked  uint64 // the device's count of frees when all memory was last seen to be live
	// took is the time of the last run in nanoseconds, at least half of what was
	// expected of it, before the first run an estimate; 0 if nothing is known.
	took atomic.Int64
}

// keptLaunch is a launch with what a kernel sees of it, ready to run.
type keptLaunch struct {
	prog  *device.Program
	label *device.Label
	// share and run are those of a program that prepares nothing. They lie here, beside
	// the arguments: kernels leave nothing else of a program in a core's first cache.
	share func(a *device.Args, lo, hi int) error
	run   func(a *device.Args, block int) error

	args    device.Args
	tiling  device.Buffer // where the tiling is not inline
	inline  []byte        // room for one that is
	inlined bool
	// ahead is what workers fetch for it, nil where that is nothing; next is that of the
	// launch that comes next with anything.
	ahead, next *ahead
}

// Keep keeps launches. A device with an observer keeps none.
func (s *Stream) Keep(ls []device.Launch) (device.Kept, error) {
	if err := s.exists(); err != nil {
		return nil, err
	}
	if s.dev.cfg.observe != nil {
		return nil, nil
	}
	k := &kept{s: s, launches: make([]keptLaunch, len(ls)), checked: s.dev.frees.Load()}
	operands, bytes := 0, 0
	for i := range ls {
		if err := checkLaunch(&ls[i]); err != nil {
			return nil, err
		}
		operands += len(ls[i].Buffers)
		bytes += tilingRoom(len(ls[i].Inline))
	}
	bufs, mem, room := make([]device.Buffer, 0, operands), make([][]byte, operands), alignedBytes(bytes)
	for i := range ls {
		l, to := &ls[i], &k.launches[i]
		first := len(bufs)
		bufs = append(bufs, l.Buffers...)
		to.prog, to.label = l.Program, l.Label
		if l.Program.Begin == nil {
			to.share, to.run = l.Program.Share, l.Program.Run
		}
		to.args.Buffers, to.args.Scratch = bufs[first:len(bufs):len(bufs)], l.Scratch
		to.args.LookUp(mem)
		mem = mem[len(l.Buffers):]
		to.inline, room = room[:tilingRoom(len(l.Inline))], room[tilingRoom(len(l.Inline)):]
		if l.Program.Ahead != nil && s.run.job != nil {
			a := make(ahead, s.dev.pool.Size())
			to.ahead = &a
		}
		k.set(to, l)
	}
	k.link()
	k.took.Store(int64(expected(k.launches)))
	return k, nil
}

// link tells each launch what comes next, in the order in which they run again and
// again.
func (k *kept) link() {
	var next *ahead
	for i := range 2 * len(k.launches) {
		l := &k.launches[len(k.launches)-1-i%len(k.launches)]
		if l.next = next; l.ahead != nil {
			next = l.ahead
		}
	}
}

// Cautious estimates of one core.
const (
	launchTime   = time.Microsecond
	bytesPerNano = 4
	flopsPerNano = 8
)

// expected is how long launches take at most as a rule, 0 where one does not know
// its cost or has its tiling elsewhere.
func expected(ls []keptLaunch) (d time.Duration) {
	for i := range ls {
		l := &ls[i]
		if l.prog.Cost == nil || !l.inlined {
			return 0
		}
		c := l.prog.Cost(l.args.Tiling, l.args.Key, l.args.Blocks)
		d += launchTime + time.Duration(c.Bytes/bytesPerNano+c.Flops/flopsPerNano)
	}
	return d
}

// tilingRoom is the room that an inline tiling of n bytes takes.
func tilingRoom(n int) int { return (n + tilingAlign - 1) &^ (tilingAlign - 1) }

// set takes over what may change of a launch. What a tiling says that is not inline is
// known when the kernel runs.
func (k *kept) set(to *keptLaunch, l *device.Launch) {
	to.args.Blocks, to.args.Key = l.Blocks, l.Key
	if to.inlined = l.Inline != nil; !to.inlined {
		to.tiling, to.args.Tiling = l.Tiling, l.Tiling.Bytes()
		return
	}
	to.args.Tiling = to.inline[:copy(to.inline, l.Inline)]
	if to.ahead != nil {
		to.ahead.of(to.prog, &to.args, k.s.dev.pool, k.s.dev.props.L2*2/aheadShare)
	}
}

// Idle reports whether all runs are done.
func (k *kept) Idle() bool { return k.s.head.Load() >= k.until }

// Set changes launch i.
func (k *kept) Set(i int, l *device.Launch) error {
	to := &k.launches[i]
	if l.Blocks < 1 || l.Blocks > maxBlocks {
		return badBlocks(l)
	}
	if len(l.Inline) > len(to.inline) {
		return l.Label.Place(status.Errorf(status.ErrInvalidParam, "want an inline tiling of at most %d bytes, got %d", len(to.inline), len(l.Inline)))
	}
	if l.Inline == nil {
		if problem := checkBuffer(l.Tiling); problem != "" {
			return badTiling(l, problem)
		}
	}
	k.set(to, l)
	return nil
}

// Run enqueues launches as one task.
func (k *kept) Run(from, to int) error {
	s := k.s
	if from < 0 || from > to || to > len(k.launches) {
		return status.Errorf(status.ErrInvalidParam, "want launches among the %d that are kept, got %d to %d", len(k.launches), from, to)
	}
	if from == to {
		return nil
	}
	s.put.Lock()
	t, err := s.nextSlot(k.checkLive)
	if err != nil {
		s.put.Unlock()
		return err
	}
	t.kind, t.kept, t.took = keptTask, k.launches[from:to], &k.took
	took := time.Duration(k.took.Load())
	s.holding.light = took > 0 && took <= lightTime
	s.stats.Launches += int64(to - from)
	k.until = s.next + 1
	s.enqueue(t)
	return nil
}

// checkLive refuses freed memory. It looks again only when something was freed
// since. The queue is locked: what is freed from now on waits for this run.
func (k *kept) checkLive() error {
	frees := k.s.dev.frees.Load()
	if frees == k.checked {
		return nil
	}
	for i := range k.launches {
		x := &k.launches[i]
		l := device.Launch{Program: x.prog, Blocks: x.args.Blocks, Buffers: x.args.Buffers, Scratch: x.args.Scratch, Tiling: x.tiling, Label: x.label}
		if x.inlined {
			l.Inline = x.inline
		}
		if err := checkLaunch(&l); err != nil {
			return err
		}
	}
	k.checked = frees
	return nil
}

// runKept runs launches one behind the other. Those of one block run without
// anything between them.
func (s *Stream) runKept(t *task) {
	r, ls, start := &s.run, t.kept, s.dev.now()
	defer func() {
		t.took.Store(max(int64(s.dev.now()-start), t.took.Load()/2, 1))
	}()
	for len(ls) > 0 && s.failure.Load() == nil {
		l := &ls[0]
		if r.job == nil || l.args.Blocks == 1 {
			ls = ls[s.runAlone(ls):]
			continue
		}
		ls = ls[1:]
		s.runShared(l)
	}
}

// runShared runs a launch of several blocks.
func (s *Stream) runShared(l *keptLaunch) {
	s.run.prog, s.run.args = l.prog, &l.args
	defer s.endLaunch(l.label)
	if !s.begin() {
		return
	}
	if l.next != nil {
		s.run.ahead.Store(l.next)
	}
	s.run.job.Run(l.args.Blocks)
	if l.ahead != nil {
		l.ahead.again()
	}
}

// whole prepares a launch and runs its blocks on this goroutine.
func (s *Stream) whole(l *keptLaunch, at *int) error {
	a := &l.args
	switch {
	case l.share != nil:
		return l.share(a, 0, a.Blocks)
	case l.run != nil && a.Blocks == 1:
		return l.run(a, 0)
	}
	if err := l.prog.Prepare(a); err != nil {
		return err
	}
	return s.share(l.prog, a, at, a.Blocks)
}

// runAlone runs launches that no other worker shares, up to the first that others
// do or that fails, and returns their number.
func (s *Stream) runAlone(ls []keptLaunch) (n int) {
	r, block, label := &s.run, noBlock, (*device.Label)(nil)
	defer func() { s.endLaunch(label) }()
	defer s.caught(&block)
	for i := range ls {
		l := &ls[i]
		if r.job != nil && l.args.Blocks != 1 {
			break
		}
		n++
		r.prog, label = l.prog, l.label
		block = 0
		if err := s.whole(l, &block); err != nil {
			s.badBlock(block, coded(err))
			break
		}
	}
	block = noBlock
	return n
}

var _ device.KeepingStream = (*Stream)(nil)
