package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// outFile is a file that a command writes. It is written beside its place and
// put there when it is complete, so that a command that fails leaves what was
// there before. What is no regular file (a pipe, a terminal) is written at once.
type outFile struct {
	io.Writer
	f *os.File
	// path is where it belongs; temporary where it is until then, "" for what is
	// written at once.
	path, temporary string
}

// createOut opens the file of a flag, none for an empty path. It must not be one
// of the files that the command reads.
func createOut(flag, path string, reads ...string) (*outFile, error) {
	if path == "" {
		return nil, nil
	}
	o, err := openOut(path, reads)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return o, nil
}

func openOut(path string, reads []string) (*outFile, error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	mode := fs.FileMode(0o666)
	switch old, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case old.IsDir():
		return nil, fmt.Errorf("%s is a folder", path)
	default:
		for _, r := range reads {
			if in, err := os.Stat(r); err == nil && os.SameFile(old, in) {
				return nil, fmt.Errorf("%s is read by the same command", path)
			}
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		if !old.Mode().IsRegular() {
			return &outFile{Writer: f, f: f, path: path}, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		mode = old.Mode().Perm()
	}
	for i := 0; ; i++ {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d", filepath.Base(path), os.Getpid(), i))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			return nil, &fs.PathError{Op: "create", Path: path, Err: e.Err}
		}
		if err != nil {
			return nil, err
		}
		return &outFile{Writer: f, f: f, path: path, temporary: name}, nil
	}
}

// end closes the file and, unless the command failed, puts it in its place. It
// returns the command's error and its own. A file that is nil or was ended has
// nothing to end.
func (o *outFile) end(failed error) error {
	if o == nil || o.f == nil {
		return failed
	}
	err := o.f.Close()
	o.f = nil
	switch {
	case o.temporary == "":
	case failed == nil && err == nil:
		err = os.Rename(o.temporary, o.path)
	}
	if o.temporary != "" && (failed != nil || err != nil) {
		err = errors.Join(err, os.Remove(o.temporary))
	}
	return errors.Join(failed, err)
}
