package image

import "goatb/status"

// IOTable says which address words change with an execution, in the arguments
// of several tiling tasks that lie in one buffer. A super kernel has one table
// for all its sub nodes.
type IOTable struct {
	Words []IOWord
	// Size is the size of the buffer.
	Size int64
}

// IOWord is one address word in the buffer.
type IOWord struct {
	// Op is the operation and Input its read input, by number among them.
	Op    int64
	Input int
	// At is where the word lies.
	At int64
}

// Add makes room for the arguments of an operation behind those of earlier ones
// and returns where they begin: a multiple of 8.
func (t *IOTable) Add(op int64, a *Args) (base int64, err error) {
	base = align(t.Size, wordBytes)
	for i := range a.Read {
		at, err := a.DataAddressAt(i)
		if err != nil {
			return 0, err
		}
		t.Words = append(t.Words, IOWord{op, i, base + at})
	}
	t.Size = base + a.Size()
	return base, nil
}

// Refresh stores new addresses in the buffer, one for each word. Another number
// of them, a buffer of another size and a nil address are errors, ErrInternal
// and ErrInvalidTensorAddr, and nothing changes.
func (t *IOTable) Refresh(buf []byte, addresses []Address) error {
	if int64(len(buf)) != t.Size || len(addresses) != len(t.Words) {
		return status.Errorf(status.ErrInternal, "address table: want %d bytes and %d addresses, got %d and %d", t.Size, len(t.Words), len(buf), len(addresses))
	}
	for i, a := range addresses {
		if a == 0 {
			return status.Errorf(status.ErrInvalidTensorAddr, "address table: want the address of input %d of operation %d, got none", t.Words[i].Input, t.Words[i].Op)
		}
	}
	for i, a := range addresses {
		le.PutUint64(buf[t.Words[i].At:], uint64(a))
	}
	return nil
}
