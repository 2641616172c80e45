package checked

import (
	"hash/maphash"
	"slices"
	"strconv"
	"sync/atomic"

	"goatb/device"
	"goatb/status"
)

func operandName(i int) string { return "operand " + strconv.Itoa(i) }

// watched returns l's program with the checks of this one launch: the kernel
// sees the memory under the names that the user gave, and the guards of its
// operands are looked at after the last block.
func (s *Stream) watched(l *device.Launch, t *task) *device.Program {
	own := s.dev.guarded(l)
	seen := device.Args{Blocks: l.Blocks, Key: l.Key, Buffers: slices.Clone(l.Buffers), Scratch: l.Scratch}
	var left atomic.Int64
	left.Store(int64(l.Blocks))
	user := l.Program
	p := &device.Program{Name: user.Name, Class: user.Class, Cost: user.Cost}
	p.Begin = func(a *device.Args) error {
		seen.Tiling = a.Tiling
		return user.Prepare(&seen)
	}
	p.Run = func(_ *device.Args, block int) error {
		if err := user.Run(&seen, block); err != nil {
			return err
		}
		if left.Add(-1) == 0 {
			s.checkLaunch(own, t)
		}
		return nil
	}
	return p
}

// guarded returns the allocations of a launch's operands that have guards.
func (d *Device) guarded(l *device.Launch) []*allocation {
	d.mu.Lock()
	defer d.mu.Unlock()
	var own []*allocation
	for _, b := range append([]device.Buffer{l.Scratch}, l.Buffers...) {
		if a, ok := d.live[b.Allocation()]; ok && a.before != nil && !slices.Contains(own, a) {
			own = append(own, a)
		}
	}
	return own
}

// checkLaunch looks at guards after a launch. The memory is still there: the
// launch is not over.
func (s *Stream) checkLaunch(own []*allocation, t *task) {
	s.dev.guardMu.Lock()
	found := guardFindings(own, "was written; found after the "+t.origin.String())
	s.dev.guardMu.Unlock()
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	for _, f := range found {
		s.model.report(f.failure(status.ErrRuntimeFail, t.origin.label))
	}
}

// hostRead is an enqueued copy that still has to read host memory.
type hostRead struct {
	span span
	task *task
}

// verified returns a launch that does the copy and checks that the source did
// not change since it was enqueued. It is nil where there is nothing to check:
// for device memory, and for host memory that enqueued work still writes.
func (s *Stream) verified(dst, src device.Buffer, t *task) *device.Launch {
	d := s.dev
	if src.Space() != device.HostSpace || dst.Size() != src.Size() || !usable(src) || !usable(dst) {
		return nil
	}
	from := src.Bytes()
	if len(from) == 0 || len(dst.Bytes()) == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mayBeWritten(src) {
		return nil
	}
	read := &hostRead{span: spanOf(src), task: t}
	d.reads = append(d.reads, read)
	sum := maphash.Bytes(d.seed, from)
	return &device.Launch{
		Blocks: 1, Inputs: 1, Buffers: []device.Buffer{d.inside(src), d.inside(dst)},
		Program: &device.Program{Name: "copy", Run: func(a *device.Args, _ int) error {
			if maphash.Bytes(d.seed, a.Mem(0)) != sum {
				s.reused(read)
			}
			copy(a.Mem(1), a.Mem(0))
			d.readDone(read)
			return nil
		}},
	}
}

// reused reports that the memory of a read changed before it was read.
func (s *Stream) reused(r *hostRead) {
	d := s.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	text := r.task.origin.String() + " read host memory that was rewritten after the copy was enqueued"
	if at := slices.Index(d.reads, r); at >= 0 {
		for _, later := range d.reads[at+1:] {
			if later.span.overlaps(r.span) {
				text += "; the same memory was used again by the " + later.task.origin.String()
				break
			}
		}
	}
	s.model.report((&Finding{Kind: Reuse, Text: text}).failure(status.ErrRuntimeFail, nil))
}

// readDone forgets a read.
func (d *Device) readDone(r *hostRead) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := slices.Index(d.reads, r); at >= 0 {
		d.reads = slices.Delete(d.reads, at, at+1)
	}
}
