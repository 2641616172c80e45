package argsformat

import (
	"math"

	"goatb/status"
)

const (
	wordBytes = 8
	// workspaceWords is the size of "all workspaces".
	workspaceWords = 16
)

// Counts tells how many instances the inputs and outputs of an operation have:
// one entry for each declared input or output, 1 for an ordinary one, 0 for an
// absent optional one, the number of its tensors for a dynamic one.
type Counts struct{ In, Out []int }

// SubNodes gives the counts of a super kernel's sub nodes.
type SubNodes func(id int64) (Counts, bool)

// Bytes returns the size of an item in an argument buffer: 8 bytes for each
// word, 4 for the 32-bit forms, 16 words for all workspaces, and a word for each
// instance of inputs and outputs in the buffer itself. subs is asked for items
// of sub nodes and may be nil where there are none. An input, output or sub node
// that does not exist is ErrInvalidParam.
func (it Item) Bytes(c Counts, subs SubNodes) (int64, error) {
	if it.InSubNode {
		ok := false
		if subs != nil {
			c, ok = subs(it.SubNode)
		}
		if !ok {
			return 0, status.Errorf(status.ErrInvalidParam, "args format: item %q: no sub node %d", it, it.SubNode)
		}
	}
	switch it.Kind {
	case Placeholder, CustomValue:
		if it.Part == Bits32 {
			return wordBytes / 2, nil
		}
	case Workspace:
		if it.Index == All {
			return workspaceWords * wordBytes, nil
		}
	case Input, InputDesc:
		return it.instances(c.In, "inputs", it.Kind == Input)
	case Output, OutputDesc:
		return it.instances(c.Out, "outputs", it.Kind == Output)
	case InputInstance:
		return it.instance(c.In, "input instances")
	case OutputInstance:
		return it.instance(c.Out, "output instances")
	}
	return wordBytes, nil
}

// instances is the size of declared operand Index, or of all.
func (it Item) instances(counts []int, what string, expands bool) (int64, error) {
	if it.Index == All {
		return wordBytes * total(counts), nil
	}
	if int64(it.Index) >= int64(len(counts)) {
		return 0, status.Errorf(status.ErrInvalidParam, "args format: item %q: the operation has %d %s", it, len(counts), what)
	}
	if it.Folded || !expands {
		return wordBytes, nil
	}
	return wordBytes * int64(counts[it.Index]), nil
}

// instance is the size of one instance, or of all.
func (it Item) instance(counts []int, what string) (int64, error) {
	n := total(counts)
	if it.Index == All {
		return wordBytes * n, nil
	}
	if int64(it.Index) >= n {
		return 0, status.Errorf(status.ErrInvalidParam, "args format: item %q: the operation has %d %s", it, n, what)
	}
	return wordBytes, nil
}

func total(counts []int) (n int64) {
	for _, c := range counts {
		n += int64(c)
	}
	return n
}

// Slot is the place of an item in an argument buffer.
type Slot struct {
	Item         Item
	Offset, Size int64
}

// Slots lays a format out: items follow each other without gaps. Errors are
// those of Item.Bytes, and ErrInvalidParam for a buffer beyond 4 GiB.
func (f Format) Slots(c Counts, subs SubNodes) ([]Slot, error) {
	slots := make([]Slot, len(f))
	at := int64(0)
	for i, it := range f {
		n, err := it.Bytes(c, subs)
		if err != nil {
			return nil, err
		}
		slots[i] = Slot{it, at, n}
		if at += n; at > math.MaxUint32 {
			return nil, status.Errorf(status.ErrInvalidParam, "args format: item %d %q: the buffer exceeds 4 GiB", i, it)
		}
	}
	return slots, nil
}
