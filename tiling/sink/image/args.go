package image

import (
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink/argsformat"
)

// Sizes of the arguments of a tiling task, in bytes.
const (
	// HeadBytes holds the length, the number of words, and an extension, which is
	// not used: u32, u32, u32, u64 without gaps.
	HeadBytes = 20
	// SlotBytes is the slot of a tensor, SlotTensorAt where the tensor lies in it.
	SlotBytes    = (TensorBytes + TensorDataAt + 7) / 8 * 8
	SlotTensorAt = TensorDataAt
)

// Args lays out the arguments of a tiling task: head, tensors of the inputs
// whose values are read, words.
type Args struct {
	// Read describes the tensors, Format the words.
	Read   []tensor.Desc
	Format argsformat.Format
	// Custom says that the task runs on the engine of functions that do not come
	// with the library: there a workspace is two words, address and size.
	Custom bool
}

// NewArgs lays the arguments of an operation's tiling task out.
func NewArgs(s *Spec, format argsformat.Format, custom bool) *Args {
	a := &Args{Format: format, Custom: custom}
	for i := range s.Val {
		if !s.Val[i].Empty() {
			a.Read = append(a.Read, s.Val[i])
		}
	}
	return a
}

// words is the number of argument words.
func (a *Args) words() int {
	n := len(a.Format)
	if a.Custom {
		for _, it := range a.Format {
			if it.Kind == argsformat.Workspace {
				n++
			}
		}
	}
	return n
}

// WordsAt is where the argument words begin, and Size the size of the whole.
func (a *Args) WordsAt() int64 { return HeadBytes + int64(len(a.Read))*SlotBytes }

// Size is described at WordsAt.
func (a *Args) Size() int64 { return a.WordsAt() + wordBytes*int64(a.words()) }

// TensorAt is where the tensor of read input i lies; an input that is not there
// is ErrInvalidParam.
func (a *Args) TensorAt(i int) (int64, error) {
	if i < 0 || i >= len(a.Read) {
		return 0, status.Errorf(status.ErrInvalidParam, "arguments of a tiling task: want a read input from 0 to %d, got %d", len(a.Read)-1, i)
	}
	return HeadBytes + int64(i)*SlotBytes + SlotTensorAt, nil
}

// Words are the values of the argument words.
type Words struct {
	Published
	// Notify is the flag that the task sets when it succeeds, 0 for none.
	Notify Address
	// Log and LogBytes are the workspace of the log, where there is one.
	Log      Address
	LogBytes int64
}

// Encode writes the arguments to dst. data are the addresses of the read inputs.
// Errors are ErrInternal: a dst or data of another size, items that a tiling
// task does not have, and a context that is not there yet.
func (a *Args) Encode(dst []byte, data []Address, w *Words) error {
	if int64(len(dst)) != a.Size() || len(data) != len(a.Read) {
		return status.Errorf(status.ErrInternal, "arguments of a tiling task: want %d bytes and %d inputs, got %d and %d", a.Size(), len(a.Read), len(dst), len(data))
	}
	clear(dst)
	le.PutUint32(dst, uint32(len(dst)))
	le.PutUint32(dst[4:], uint32(a.words()))
	for i := range a.Read {
		putTensor(dst[HeadBytes+int64(i)*SlotBytes+SlotTensorAt:], &a.Read[i], data[i], a.Read[i].Bytes())
	}
	at := dst[a.WordsAt():]
	for _, it := range a.Format {
		vs, n, err := w.item(it, a.Custom)
		if err != nil {
			return err
		}
		for _, v := range vs[:n] {
			le.PutUint64(at, v)
			at = at[wordBytes:]
		}
	}
	return nil
}

// item is the one or two words of an item.
func (w *Words) item(it argsformat.Item, custom bool) (vs [2]uint64, n int, err error) {
	switch it.Kind {
	case argsformat.TilingContext:
		a, err := w.part(it)
		return [2]uint64{uint64(a)}, 1, err
	case argsformat.OpType:
		if w.Type == 0 {
			return vs, 0, notLaunched(it)
		}
		return [2]uint64{uint64(w.Type)}, 1, nil
	case argsformat.Placeholder:
		if it.Part == argsformat.Bits64 {
			return vs, 1, nil
		}
	case argsformat.EventAddr:
		return [2]uint64{uint64(w.Notify)}, 1, nil
	case argsformat.Workspace:
		if custom {
			return [2]uint64{uint64(w.Log), uint64(w.LogBytes)}, 2, nil
		}
		return [2]uint64{uint64(w.Log)}, 1, nil
	}
	return vs, 0, status.Errorf(status.ErrInternal, "arguments of a tiling task: item %q does not belong there", it)
}

// part is the address of a part of the tiling context.
func (p *Published) part(it argsformat.Item) (Address, error) {
	var a Address
	switch it.Part {
	case argsformat.WholeContext:
		a = p.Context
	case argsformat.TilingData:
		a = p.Data
	case argsformat.TilingKey:
		a = p.Key
	case argsformat.BlockDim:
		a = p.BlockDim
	default:
		return 0, status.Errorf(status.ErrInternal, "args format: unknown part %d of a tiling context", it.Part)
	}
	if a == 0 {
		return 0, notLaunched(it)
	}
	return a, nil
}

func notLaunched(it argsformat.Item) error {
	return status.Errorf(status.ErrInternal, "args format: item %q: the tiling task has not been launched", it)
}
