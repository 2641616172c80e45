package device

import (
	"iter"
	"strconv"
)

// AddressUse is one word of the address table: what a task does with an address.
type AddressUse struct {
	// At is the word, in the list itself. It may be no memory.
	At *Address
	// Name tells which word of the task it is, such as "operand 2".
	Name string
	// Write says that the task may write there.
	Write bool
	// Sub is the sub kernel of a super kernel, 0 in other tasks.
	Sub int
}

// Uses lists the words of a task, operands first, absent ones included.
func (t *Task) Uses() iter.Seq[AddressUse] {
	return func(yield func(AddressUse) bool) {
		switch {
		case t.Kernel != nil:
			t.Kernel.uses(0, yield)
		case t.Preprocess != nil:
			t.Preprocess.uses(yield)
		case t.Update != nil:
			t.Update.Patch.uses(0, yield)
		case t.Copy != nil:
			_ = yield(AddressUse{At: &t.Copy.Dst, Name: "destination", Write: true}) &&
				yield(AddressUse{At: &t.Copy.Src, Name: "source"})
		}
		for i := range t.Super {
			s := &t.Super[i]
			if !s.Kernel.uses(i, yield) || s.Sunk != nil && !s.Sunk.Patch.uses(i, yield) {
				return
			}
		}
	}
}

func (k *Kernel) uses(sub int, yield func(AddressUse) bool) bool {
	for i := range k.Operands {
		if !yield(AddressUse{At: &k.Operands[i], Name: "operand " + strconv.Itoa(i), Write: i >= k.Inputs, Sub: sub}) {
			return false
		}
	}
	return yield(AddressUse{At: &k.Scratch, Name: "scratch", Write: true, Sub: sub}) &&
		yield(AddressUse{At: &k.Tiling, Name: "tiling", Sub: sub})
}

func (p *Patch) uses(sub int, yield func(AddressUse) bool) bool {
	return yield(AddressUse{At: &p.Key, Name: "tiling key", Sub: sub}) &&
		yield(AddressUse{At: &p.Blocks, Name: "block dim", Sub: sub})
}

func (p *Preprocess) uses(yield func(AddressUse) bool) {
	for i := range p.Inputs {
		if !yield(AddressUse{At: &p.Inputs[i], Name: "input " + strconv.Itoa(i)}) {
			return
		}
	}
	for i := range p.Outputs {
		if !yield(AddressUse{At: &p.Outputs[i], Name: "output " + strconv.Itoa(i), Write: true}) {
			return
		}
	}
}

// Extents is how much of its inputs, outputs and workspaces a list touches: for
// each index the bytes that its memory needs at least, -1 where no task uses it.
type Extents [WorkspaceMemory + 1][]int64

// Of returns the extents of one type of memory; AbsoluteMemory has none.
func (e *Extents) Of(t MemoryType) []int64 { return e[t] }

// Extents measures a list that Check has passed.
func (l *TaskList) Extents() Extents {
	var e Extents
	for i := range l.Tasks {
		for u := range l.Tasks[i].Uses() {
			if u.At.Type == AbsoluteMemory {
				continue
			}
			need := &e[u.At.Type]
			for len(*need) <= u.At.Index {
				*need = append(*need, -1)
			}
			(*need)[u.At.Index] = max((*need)[u.At.Index], u.At.Off+u.At.Size)
		}
	}
	return e
}

// Updated returns the tasks, by index, whose kernel is tiled on the device.
func (l *TaskList) Updated() []bool {
	updated := make([]bool, len(l.Tasks))
	at := map[entryName]int{}
	for i := range l.Tasks {
		t := &l.Tasks[i]
		at[entryName{t.Stream, t.ID}] = i
		for j := range t.Super {
			updated[i] = updated[i] || t.Super[j].Sunk != nil
		}
		if u := t.Update; t.Kind == UpdateTask && u != nil {
			if target, ok := at[entryName{u.Target, u.Task}]; ok {
				updated[target] = true
			}
		}
	}
	return updated
}

// String names the type: "absolute", "input", "output" or "workspace".
func (t MemoryType) String() string {
	if t > WorkspaceMemory {
		return "memory type " + strconv.Itoa(int(t))
	}
	return [...]string{"absolute", "input", "output", "workspace"}[t]
}
