package tensor

import (
	"math"
	"os"

	"goatb/status"
)

// OpenSafetensors opens a safetensors file. Where the system can map files the
// entries' data lie in the mapping, read-only and without a copy: writing to
// them is a fault, as is touching them after Close or when another program cut
// the file short. Elsewhere the file is read into memory. Errors are those of
// ReadSafetensors; errors.Is finds the system's.
func OpenSafetensors(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fileErrorf("%w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fileErrorf("%w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fileErrorf("%s: not a regular file", path)
	}
	f, err := openFile(file, info.Size())
	return f, status.Place(err, status.ErrInvalidParam, "", "", path)
}

// openFile maps a file where that works and reads it otherwise.
func openFile(file *os.File, size int64) (*File, error) {
	if !canMap || size < 8 || size > math.MaxInt {
		return ReadSafetensors(file, size)
	}
	mem, err := mapFile(file, int(size))
	if err != nil {
		return ReadSafetensors(file, size)
	}
	f, err := ParseSafetensors(mem)
	if err != nil {
		_ = unmapFile(mem)
		return nil, err
	}
	f.mapped = mem
	return f, nil
}
