// Package boundedfile reads files of people's choice into memory: a device or a
// pipe without end is an error, not all the memory there is.
package boundedfile

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Text is a bound for files that are written by hand or by a tool for people:
// graphs, profiles, tables.
const Text = 64 << 20

// Read returns the content of a file that has at most so many bytes.
func Read(path string, most int64) (b []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if b, err = io.ReadAll(io.LimitReader(f, most+1)); err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s: want at most %d bytes, got more", path, most)
	}
	return b, nil
}
