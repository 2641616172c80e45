package image

import "goatb/status"

// Address is a place in the memory that a task sees; 0 is no memory.
type Address uint64

// Bits of an address, from the lowest: the byte in the window, the window's
// number from 1, and whether the task may write there.
const (
	offsetBits         = 40
	outputBit  Address = 1 << 63
	maxOffset          = 1<<offsetBits - 1
)

// InputAt is the address of byte `off` of input window i of the task.
func InputAt(i int, off int64) Address { return Address(i+1)<<offsetBits | Address(off) }

// OutputAt is the address of byte `off` of output window i of the task.
func OutputAt(i int, off int64) Address { return outputBit | InputAt(i, off) }

// At is the address n bytes behind a; that of no memory stays 0.
func (a Address) At(n int64) Address {
	if a == 0 {
		return 0
	}
	return a + Address(n)
}

// Memory is the memory that a task sees.
type Memory struct {
	// In is only read, Out may be written.
	In, Out [][]byte
}

// Bytes returns n bytes at an address. The address of no memory, a window that
// is not there, and bytes outside of it are ErrInvalidTensorAddr.
func (m *Memory) Bytes(a Address, n int64) ([]byte, error) {
	b, err := m.from(a)
	if err != nil {
		return nil, err
	}
	if n < 0 || n > int64(len(b)) {
		return nil, status.Errorf(status.ErrInvalidTensorAddr, "address %#x: want %d bytes, %d are left of its window", uint64(a), n, len(b))
	}
	return b[:n:n], nil
}

// from returns the rest of a window.
func (m *Memory) from(a Address) ([]byte, error) {
	if a == 0 {
		return nil, status.Errorf(status.ErrInvalidTensorAddr, "want an address, got nil")
	}
	windows := m.In
	if a&outputBit != 0 {
		windows = m.Out
	}
	i, off := int64(a&^outputBit>>offsetBits)-1, int64(a&maxOffset)
	if i < 0 || i >= int64(len(windows)) || off > int64(len(windows[i])) {
		return nil, status.Errorf(status.ErrInvalidTensorAddr, "address %#x: byte %d of window %d is outside the %d windows of the task", uint64(a), off, i, len(windows))
	}
	return windows[i][off:], nil
}
