package tensor

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unsafe"

	"goatb/status"
)

// File is the content of a safetensors file: an 8-byte little-endian header
// length, a JSON header that maps names to types, shapes and byte ranges, and
// the tensors' bytes, little-endian and row-major. A File may be read from any
// goroutine; Close ends that.
type File struct {
	entries  []Entry
	index    map[string]int
	metadata map[string]string
	mapped   []byte
}

// Entry is a named tensor of a File.
type Entry struct {
	Name string
	// Desc is row-major. A file may hold tensors with a dimension 0, which have
	// no bytes, and scalars, which have no dimensions: a scalar's shape is [1].
	Desc Desc
	// Scalar says that the file gives the shape as [].
	Scalar bool
	// Data is the tensor's memory, a part of the file's. A file may place it at
	// any byte, so it may be unaligned for the element type: see AlignedData.
	Data []byte
}

// Aligned reports whether Data may be viewed as elements of its type.
func (e *Entry) Aligned() bool {
	if e == nil {
		return true
	}
	align := uintptr(min(e.Desc.DType.Size(), 8))
	return len(e.Data) == 0 || align == 0 || uintptr(unsafe.Pointer(unsafe.SliceData(e.Data)))%align == 0
}

// AlignedData returns Data where it is aligned for its type, else a copy.
func (e *Entry) AlignedData() []byte {
	if e == nil {
		return nil
	}
	if e.Aligned() {
		return e.Data
	}
	return append(make([]byte, 0, len(e.Data)), e.Data...)
}

// Entries returns the tensors in the order of their data. The slice is the
// file's: it must not be changed.
func (f *File) Entries() []Entry {
	if f == nil {
		return nil
	}
	return f.entries
}

// Entry returns the tensor with a name, nil when there is none.
func (f *File) Entry(name string) *Entry {
	if f == nil {
		return nil
	}
	i, ok := f.index[name]
	if !ok {
		return nil
	}
	return &f.entries[i]
}

// Metadata returns the strings of the header's "__metadata__". The map is the
// file's: it must not be changed.
func (f *File) Metadata() map[string]string {
	if f == nil {
		return nil
	}
	return f.metadata
}

// Close unmaps a mapped file: its entries lose their data, and data taken from
// them before must not be touched any more. It does nothing for other files
// and when called again.
func (f *File) Close() error {
	if f == nil || f.mapped == nil {
		return nil
	}
	mem := f.mapped
	f.mapped = nil
	for i := range f.entries {
		f.entries[i].Data = nil
	}
	if err := unmapFile(mem); err != nil {
		return fileErrorf("unmap: %w", err)
	}
	return nil
}

// maxHeader bounds the header's length, as other readers of the format do.
const maxHeader = 100_000_000

// ParseSafetensors reads a file that lies in memory. The entries' data are
// parts of b, not copies. Every error is ErrInvalidParam: a header that is too
// long, cut or no JSON of the right form, repeated names, a type or a rank
// that the library does not have, a byte range that is not the size of its
// tensor, and ranges that leave the file, overlap or leave bytes unused.
func ParseSafetensors(b []byte) (*File, error) {
	n, err := headerLength(b, int64(len(b)))
	if err != nil {
		return nil, err
	}
	f, err := parseHeader(b[8:8+n], int64(len(b))-8-n)
	if err != nil {
		return nil, err
	}
	f.slice(b[8+n:])
	return f, nil
}

// ReadSafetensors reads a file of size bytes from r into memory. It refuses
// what ParseSafetensors refuses, before it reads any data, and returns r's
// errors as ErrInvalidParam.
func ReadSafetensors(r io.ReaderAt, size int64) (*File, error) {
	if err := status.Given("read safetensors", "r", r); err != nil {
		return nil, err
	}
	prefix, err := readRange(r, 0, min(size, 8))
	if err != nil {
		return nil, err
	}
	n, err := headerLength(prefix, size)
	if err != nil {
		return nil, err
	}
	header, err := readRange(r, 8, n)
	if err != nil {
		return nil, err
	}
	f, err := parseHeader(header, size-8-n)
	if err != nil {
		return nil, err
	}
	data, err := readRange(r, 8+n, size-8-n)
	if err != nil {
		return nil, err
	}
	f.slice(data)
	return f, nil
}

// readRange reads n bytes at off. It looks at the last one first, so that a
// size that promises too much is found before memory is taken for it.
func readRange(r io.ReaderAt, off, n int64) ([]byte, error) {
	if n <= 0 {
		return []byte{}, nil
	}
	var last [1]byte
	if err := readAt(r, last[:], off+n-1); err != nil {
		return nil, err
	}
	if n > math.MaxInt {
		return nil, fileErrorf("%d bytes at %d do not fit the address space", n, off)
	}
	b := make([]byte, n)
	return b, readAt(r, b, off)
}

// readAt fills b from off.
func readAt(r io.ReaderAt, b []byte, off int64) error {
	_, err := io.ReadFull(io.NewSectionReader(r, off, int64(len(b))), b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fileErrorf("read %d bytes at %d: %w", len(b), off, err)
	}
	return nil
}

// headerLength checks the first 8 bytes of a file of size bytes.
func headerLength(prefix []byte, size int64) (int64, error) {
	if size < 8 || len(prefix) < 8 {
		return 0, fileErrorf("want at least 8 bytes, got %d", max(size, 0))
	}
	n := binary.LittleEndian.Uint64(prefix)
	if limit := min(size-8, maxHeader); n > uint64(limit) {
		return 0, fileErrorf("want a header of at most %d bytes, got %d", limit, n)
	}
	return int64(n), nil
}

// slice gives the entries their parts of data.
func (f *File) slice(data []byte) {
	off := 0
	for i := range f.entries {
		e := &f.entries[i]
		n := int(storedBytes(e))
		e.Data = data[off : off+n : off+n]
		off += n
	}
}

// storedBytes is the size of an entry in a file, -1 when the shape has none.
func storedBytes(e *Entry) int64 {
	n := e.Desc.DType.Size()
	for _, d := range e.Desc.Shape.known() {
		if d < 0 {
			return -1
		}
	}
	if e.Desc.Empty() {
		return 0
	}
	for _, d := range e.Desc.Shape.known() {
		if n > math.MaxInt64/d {
			return -1
		}
		n *= d
	}
	return n
}

func fileErrorf(format string, args ...any) error {
	return &status.OpError{Code: status.ErrInvalidParam, Op: "safetensors", Err: fmt.Errorf(format, args...)}
}
