package cpu

import (
	"goatb/device"
	"goatb/status"
)

// bases is the host's side of a model's address table: which memory the next
// execution will use. Replay checks it.
type bases struct {
	of       [device.WorkspaceMemory + 1][]base
	complete bool            // everything that tasks use has an address
	absolute []device.Buffer // memory that never moves, one window for each allocation
}

// base is an input, an output or a workspace.
type base struct {
	buf  device.Buffer
	need int64 // bytes, -1 where no task uses it
}

func newBases(e device.Extents) bases {
	var b bases
	for t := device.InputMemory; t <= device.WorkspaceMemory; t++ {
		for _, need := range e.Of(t) {
			b.of[t] = append(b.of[t], base{need: need})
		}
	}
	return b
}

// find returns a base, nil when the list has none.
func (b *bases) find(t device.MemoryType, index int) *base {
	if t == device.AbsoluteMemory || int(t) >= len(b.of) || index < 0 || index >= len(b.of[t]) {
		return nil
	}
	return &b.of[t][index]
}

// moved returns the last move of a base among moves.
func moved(moves []device.Relocation, t device.MemoryType, index int) *device.Relocation {
	for i := len(moves) - 1; i >= 0; i-- {
		if m := &moves[i]; m.Type == t && m.Index == index {
			return m
		}
	}
	return nil
}

// check refuses a refresh that does not fit the list.
func (b *bases) check(r *device.Refresh) error {
	for i := range r.Moves {
		m := &r.Moves[i]
		to := b.find(m.Type, m.Index)
		switch {
		case to == nil:
			return status.Errorf(status.ErrInvalidParam, "want memory that the model uses, got %s %d", m.Type, m.Index)
		case m.Buffer.IsNil() && to.need > 0:
			return status.Errorf(status.ErrInvalidTensorAddr, "want memory for %s %d, got none", m.Type, m.Index)
		case m.Buffer.Size() < to.need:
			return status.Errorf(status.ErrInvalidTensorSize, "want at least %d bytes for %s %d, got %d", to.need, m.Type, m.Index, m.Buffer.Size())
		}
	}
	if !b.complete {
		for t := range b.of {
			for i := range b.of[t] {
				if b.of[t][i].need >= 0 && moved(r.Moves, device.MemoryType(t), i) == nil {
					return status.Errorf(status.ErrInvalidTensorAddr, "want an address for %s %d, got none", device.MemoryType(t), i)
				}
			}
		}
	}
	for i := range r.Writes {
		if err := b.checkWrite(&r.Writes[i], r.Moves); err != nil {
			return err
		}
	}
	return nil
}

func (b *bases) checkWrite(w *device.Write, moves []device.Relocation) error {
	if w.To.Bytes() != int64(len(w.Data)) || w.To.Off < 0 || w.To.Size < 0 {
		return status.Errorf(status.ErrInvalidParam, "want %d bytes to write, got %d at %d", w.To.Bytes(), len(w.Data), w.To.Off)
	}
	room := w.To.Buffer
	if w.To.Type != device.AbsoluteMemory {
		to := b.find(w.To.Type, w.To.Index)
		if to == nil {
			return status.Errorf(status.ErrInvalidParam, "want to write memory that the model uses, got %s %d", w.To.Type, w.To.Index)
		}
		room = to.buf
		if m := moved(moves, w.To.Type, w.To.Index); m != nil {
			room = m.Buffer
		}
		if w.To.Off > room.Size() || w.To.Size > room.Size()-w.To.Off {
			return status.Errorf(status.ErrInvalidTensorSize, "want to write %d bytes at %d of %s %d, got room for %d", w.To.Size, w.To.Off, w.To.Type, w.To.Index, room.Size())
		}
	}
	if room.IsNil() {
		return status.Errorf(status.ErrInvalidTensorAddr, "want memory to write %d bytes to, got none", len(w.Data))
	}
	return nil
}

// checkMoved refuses moves to memory, and writes to it, that the device cannot
// use.
func (b *bases) checkMoved(r *device.Refresh) error {
	for i := range r.Moves {
		m := &r.Moves[i]
		if problem := checkBuffer(m.Buffer); problem != "" {
			return status.Errorf(status.ErrInvalidTensorAddr, "want live memory for %s %d, got %s", m.Type, m.Index, problem)
		}
	}
	for i := range r.Writes {
		if problem := checkBuffer(r.Writes[i].To.Buffer); problem != "" {
			return status.Errorf(status.ErrInvalidTensorAddr, "want live memory to write to, got %s", problem)
		}
	}
	return nil
}

// checkUnmoved refuses memory that was freed since it was given.
func (b *bases) checkUnmoved(moves []device.Relocation) error {
	for t := range b.of {
		for i := range b.of[t] {
			x := &b.of[t][i]
			if !sound(&x.buf) && moved(moves, device.MemoryType(t), i) == nil {
				return status.Errorf(status.ErrInvalidTensorAddr, "want live memory for %s %d, got %s", device.MemoryType(t), i, checkBuffer(x.buf))
			}
		}
	}
	for i := range b.absolute {
		if !sound(&b.absolute[i]) {
			return status.Errorf(status.ErrInvalidTensorAddr, "want live memory of %d bytes that never moves, got %s", b.absolute[i].Size(), checkBuffer(b.absolute[i]))
		}
	}
	return nil
}

// move takes over the addresses of checked moves.
func (b *bases) move(moves []device.Relocation) {
	for i := range moves {
		b.find(moves[i].Type, moves[i].Index).buf = moves[i].Buffer
	}
	b.complete = true
}

// table is the device's side of the address table: the bases of the current
// execution, and the words that hang on them.
type table struct {
	now   [device.WorkspaceMemory + 1][]device.Buffer
	words [device.WorkspaceMemory + 1][][]word
}

// word is a place that holds a window of a base.
type word struct {
	at        *device.Buffer
	off, size int64
}

func newTable(e device.Extents) table {
	var t table
	for i := range t.now {
		n := len(e.Of(device.MemoryType(i)))
		t.now[i], t.words[i] = make([]device.Buffer, n), make([][]word, n)
	}
	return t
}

// bind makes at hold address a from now on.
func (t *table) bind(at *device.Buffer, a *device.Address) {
	if a.Type == device.AbsoluteMemory {
		*at = a.Buffer
		return
	}
	words := &t.words[a.Type][a.Index]
	*words = append(*words, word{at: at, off: a.Off, size: a.Size})
}

// refresh gives a base another address.
func (t *table) refresh(m *device.Relocation) {
	t.now[m.Type][m.Index] = m.Buffer
	for _, w := range t.words[m.Type][m.Index] {
		*w.at = m.Buffer.At(w.off, w.size)
	}
}

// resolve returns the memory of an address.
func (t *table) resolve(a *device.Address) device.Buffer {
	if a.Type == device.AbsoluteMemory {
		return a.Buffer
	}
	return t.now[a.Type][a.Index].At(a.Off, a.Size)
}

// pendingWrite is a write of an execution that has not begun.
type pendingWrite struct {
	to   device.Address
	size int
}

// fifo is a queue that keeps its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) add(item T) {
	f.room(1)
	f.items = append(f.items, item)
}

func (f *fifo[T]) push(items []T) {
	f.room(len(items))
	f.items = append(f.items, items...)
}

// room moves what is left to the front rather than let the memory grow.
func (f *fifo[T]) room(n int) {
	if f.head > 0 && len(f.items)+n > cap(f.items) {
		left := copy(f.items, f.items[f.head:])
		clear(f.items[left:])
		f.items, f.head = f.items[:left], 0
	}
}

// pop returns the next n items; they are valid until the next push.
func (f *fifo[T]) pop(n int) []T {
	out := f.items[f.head : f.head+n]
	f.head += n
	if f.head == len(f.items) {
		f.items, f.head = f.items[:0], 0
	}
	return out
}
