package cpu

import (
	"sync/atomic"
	"time"
	"unsafe"

	"goatb/device"
	"goatb/status"
)

type taskKind uint8

const (
	launchTask taskKind = iota
	copyTask
	recordTask
	waitTask
	replayTask
	keptTask
)

var taskNames = [...]string{"launch", "copy", "record", "wait", "replay", "kept"}

// task is one piece of work in a stream's queue. The enqueuer writes it, the
// runner reads it.
type task struct {
	kind   taskKind
	inline bool // tiling is a copy in data
	blocks int
	prog   *device.Program
	label  *device.Label
	key    uint64
	bufs   []device.Buffer // in the operand arena
	data   []byte          // in the tiling arena
	a, b   device.Buffer   // scratch and tiling of a launch, dst and src of a copy
	event  *Event
	gen    uint64 // of the event, or of the end of a model's execution
	model  *Model // executed, with `blocks` moves and `key` writes
	kept   []keptLaunch
	took   *atomic.Int64 // of kept launches, to be set
	// enqueued is when the task got its slot, for observers.
	enqueued time.Time

	bufsAt, dataAt uint64 // positions of the arenas when the task was enqueued
}

// slot is a place in a queue. It shares no cache line with the next one, which
// the enqueuer writes while the runner reads this one.
type slot struct {
	task
	_ [2*cacheLine - unsafe.Sizeof(task{})]byte
}

// checkLaunch refuses what cannot run.
func checkLaunch(l *device.Launch) error {
	if l == nil || l.Program == nil || l.Program.Run == nil {
		return status.Errorf(status.ErrInvalidParam, "want a program with a run function, got none")
	}
	if l.Blocks < 1 || l.Blocks > maxBlocks {
		return badBlocks(l)
	}
	if l.Inputs < 0 || l.Inputs > len(l.Buffers) {
		return l.Label.Place(status.Errorf(status.ErrInvalidParam, "want 0 to %d inputs, got %d", len(l.Buffers), l.Inputs))
	}
	for i := range l.Buffers {
		if sound(&l.Buffers[i]) {
			continue
		}
		if problem := checkBuffer(l.Buffers[i]); problem != "" {
			return l.Label.Place(status.Errorf(status.ErrInvalidTensorAddr, "want live memory for operand %d, got %s", i, problem))
		}
	}
	if problem := checkBuffer(l.Scratch); problem != "" {
		return l.Label.Place(status.Errorf(status.ErrInvalidTensorAddr, "want live memory for scratch, got %s", problem))
	}
	if l.Inline == nil {
		if problem := checkBuffer(l.Tiling); problem != "" {
			return badTiling(l, problem)
		}
	}
	return nil
}

func badBlocks(l *device.Launch) error {
	return l.Label.Place(status.Errorf(status.ErrInvalidParam, "want 1 to %d blocks, got %d", maxBlocks, l.Blocks))
}

func badTiling(l *device.Launch, problem string) error {
	return l.Label.Place(status.Errorf(status.ErrInvalidTensorAddr, "want live memory for tiling, got %s", problem))
}

// checkCopy refuses what cannot be copied.
func checkCopy(dst, src device.Buffer) error {
	if dst.Size() != src.Size() {
		return status.Errorf(status.ErrInvalidParam, "want a copy between windows of one size, got %d bytes from %d", dst.Size(), src.Size())
	}
	for _, end := range [...]struct {
		name string
		buf  device.Buffer
	}{{"destination", dst}, {"source", src}} {
		problem := checkBuffer(end.buf)
		if end.buf.IsNil() {
			problem = "no memory"
		}
		if problem != "" {
			return status.Errorf(status.ErrInvalidTensorAddr, "want live memory for a copy's %s, got %s", end.name, problem)
		}
	}
	return nil
}

// sound reports whether checkBuffer would find nothing: a short way for buffers
// that are as they should be.
func sound(b *device.Buffer) bool {
	a := b.Allocation()
	if a == nil {
		return true
	}
	off, size := uint64(b.Offset()), uint64(b.Size())
	room := uint64(a.Size())
	return !a.Freed() && off <= room && size <= room-off && a.Memory() != nil
}

// checkBuffer says what is wrong with b, nothing for no memory at all.
func checkBuffer(b device.Buffer) string {
	a := b.Allocation()
	if a == nil {
		return ""
	}
	switch size := a.Size(); {
	case a.Freed():
		return "freed memory"
	case b.Offset() < 0 || b.Size() < 0 || b.Offset() > size || b.Size() > size-b.Offset():
		return "a window outside its allocation"
	case size > 0 && a.Memory() == nil:
		return "memory that the processor cannot address"
	}
	return ""
}
