package cache

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Positions of the inputs of Windows. The caches are its outputs 0 and 1 too,
// in the same memory.
const (
	WindowsKey        = iota // [tokens, heads, width]
	WindowsValue             // as the keys
	WindowsSlots             // int32 [sequences*heads]
	WindowsSizes             // int32 [sequences*heads]
	WindowsLengths           // int32 [sequences]
	WindowsOffsets           // int32 [sequences*heads]; absent without Drop
	WindowsKeyCache          // [blocks, block size, 1, width]
	WindowsValueCache        // as the key cache
	windowsInputs
)

// WindowsParams are the parameters of Windows.
type WindowsParams struct {
	// Drop keeps a sequence's tokens but for a window; without it the window,
	// at the sequence's end, is all that is kept.
	Drop bool
}

// Windows holds the kernels that write, for each sequence and head, some of
// the sequence's tokens to consecutive slots of caches with one head.
//
// Without Drop these are the last size tokens. With Drop they are all tokens
// but those at positions offset to offset+size-1, and all of them when the
// offset is -1. A sequence and head with a negative slot is passed over.
// Lengths, sizes, offsets and slots that do not fit are an error that names
// them.
var Windows = kernel.Table{windowsGo}

type windowsTiling struct {
	Tokens, Sequences, Heads int64
	// A row of a target is a token's vector of one head.
	Key, Value target
	Drop       bool
}

var windowsGo = kernel.Define(kernel.Def[WindowsParams, windowsTiling]{
	Name:    "cachewindows/go",
	Class:   device.Move,
	InPlace: true,
	Pairs:   [][2]int{{0, WindowsKeyCache}, {1, WindowsValueCache}},
	Supports: func(p *kernel.Problem, a WindowsParams) error {
		var t windowsTiling
		return t.measure(p, a)
	},
	Tile: func(p *kernel.Problem, a WindowsParams, t *windowsTiling, _ []int64) (kernel.Grid, error) {
		if err := t.measure(p, a); err != nil {
			return kernel.Grid{}, err
		}
		rows := t.Tokens * t.Heads
		nanos := t.Key.nanos(rows) + t.Value.nanos(rows)
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, rows, nanos)}, nil
	},
	Run: runWindows,
	Cost: func(t *windowsTiling, _ []int64) (flops, bytes int64) {
		return 0, 2 * t.Tokens * t.Heads * (t.Key.Row + t.Value.Row)
	},
})

func (t *windowsTiling) measure(p *kernel.Problem, a WindowsParams) error {
	if len(p.In) != windowsInputs || len(p.Out) != 2 {
		return status.Errorf(status.ErrInvalidParam, "want %d inputs and 2 outputs, got %d and %d", windowsInputs, len(p.In), len(p.Out))
	}
	if err := sameCaches(p, WindowsKeyCache); err != nil {
		return err
	}
	k := &p.In[WindowsKey]
	if k.Rank() != 3 || p.In[WindowsOffsets].Empty() == a.Drop {
		return status.Errorf(status.ErrInvalidParam, "want keys of rank 3 and offsets exactly with drop, got %s and %s", k, p.In[WindowsOffsets])
	}
	t.Tokens, t.Heads, t.Drop = k.Dim(0), k.Dim(1), a.Drop
	t.Sequences = p.In[WindowsLengths].Numel()
	for i, want := range [...]int64{
		WindowsSlots: t.Sequences * t.Heads, WindowsSizes: t.Sequences * t.Heads,
		WindowsLengths: t.Sequences, WindowsOffsets: t.Sequences * t.Heads,
	} {
		d := &p.In[i]
		if i >= WindowsSlots && !d.Empty() && (d.DType != tensor.Int32 || d.Rank() != 1 || d.Dim(0) != want) {
			return status.Errorf(status.ErrInvalidParam, "want int32[%d], got %s", want, d)
		}
	}
	for i, c := range [...]*target{&t.Key, &t.Value} {
		x, d := &p.In[WindowsKey+i], &p.In[WindowsKeyCache+i]
		if x.Rank() != 3 || x.Dim(0) != t.Tokens || x.Dim(1) != t.Heads || x.DType != d.DType || d.Rank() != 4 || d.Dim(2) != 1 {
			return status.Errorf(status.ErrInvalidParam, "source %s does not go with cache %s of one head", x, d)
		}
		if err := c.fill(d, Rows, x.Dim(2)); err != nil {
			return err
		}
	}
	if t.Key.Slots != t.Value.Slots {
		return status.Errorf(status.ErrInvalidParam, "want caches of as many slots, got %s and %s", p.In[WindowsKeyCache], p.In[WindowsValueCache])
	}
	return nil
}

// window is the tokens of one sequence and head that are kept: positions
// [0, head) and [tail, end) of the sequence.
type window struct{ head, tail, end int64 }

func (w window) size() int64 { return w.head + w.end - w.tail }

// window reads what entry i, of a sequence with length tokens, keeps.
func (t *windowsTiling) window(a *kernel.Args, i, length int64) (window, error) {
	size := int64(ids(a, WindowsSizes)[i])
	if !t.Drop {
		if size < 0 || size > length {
			return window{}, status.Errorf(status.ErrRuntimeFail, "position %d: want a window of 0 to %d tokens, got %d", i, length, size).On("wins")
		}
		return window{0, length - size, length}, nil
	}
	offset := int64(ids(a, WindowsOffsets)[i])
	if offset == -1 {
		return window{length, length, length}, nil
	}
	if offset < 0 || offset > length {
		return window{}, status.Errorf(status.ErrRuntimeFail, "position %d: want an offset from -1 to %d, got %d", i, length, offset).On("offsetIndex")
	}
	if size < 0 {
		return window{}, status.Errorf(status.ErrRuntimeFail, "position %d: want a window of 0 tokens or more, got %d", i, size).On("wins")
	}
	return window{offset, min(offset+size, length), length}, nil
}

func runWindows(a *kernel.Args, block int, t *windowsTiling, _ []int64) error {
	if err := t.each(a, t.check); err != nil {
		return err
	}
	return t.each(a, func(i, slot, first int64, w window) error {
		t.copy(a, block, i%t.Heads, slot, first, w)
		return nil
	})
}

// each calls do for every entry that has a slot, with the row of its
// sequence's first token.
func (t *windowsTiling) each(a *kernel.Args, do func(i, slot, first int64, w window) error) error {
	slots, lengths := ids(a, WindowsSlots), ids(a, WindowsLengths)
	first := int64(0)
	for s := range t.Sequences {
		length := int64(lengths[s])
		if length < 0 || length > t.Tokens-first {
			return status.Errorf(status.ErrRuntimeFail, "position %d: want a length from 0 to %d, got %d", s, t.Tokens-first, length).On("seqLen")
		}
		for i := s * t.Heads; i < (s+1)*t.Heads; i++ {
			if slots[i] < 0 {
				continue
			}
			w, err := t.window(a, i, length)
			if err != nil {
				return err
			}
			if err := do(i, int64(slots[i]), first, w); err != nil {
				return err
			}
		}
		first += length
	}
	return nil
}

func (t *windowsTiling) check(i, slot, _ int64, w window) error {
	if n := w.size(); slot > t.Key.Slots-n {
		return status.Errorf(status.ErrRuntimeFail, "position %d: want %d slots below %d, got slot %d", i, n, t.Key.Slots, slot).On("slots")
	}
	return nil
}

// copy writes the kept tokens of one entry to the slots that the block owns.
func (t *windowsTiling) copy(a *kernel.Args, block int, head, slot, first int64, w window) {
	key, value := a.Mem(WindowsKey), a.Mem(WindowsValue)
	keyCache, valueCache := a.Mem(windowsInputs), a.Mem(windowsInputs+1)
	for j := range w.size() {
		if !owns(slot+j, block, a.Blocks) {
			continue
		}
		token := first + j
		if j >= w.head {
			token += w.tail - w.head
		}
		row := token*t.Heads + head
		t.Key.put(keyCache, slot+j, key[row*t.Key.Row:(row+1)*t.Key.Row])
		t.Value.put(valueCache, slot+j, value[row*t.Value.Row:(row+1)*t.Value.Row])
	}
}
