package cpu

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"goatb/status"
)

// noBlock says that no block is running.
const noBlock = -1

// caught turns a panic of block *at, or the end of its goroutine, into the
// launch's error. It is deferred directly.
func (s *Stream) caught(at *int) {
	v := recover()
	if v == nil {
		if *at != noBlock {
			s.badBlock(*at, status.Errorf(status.ErrRuntimeFail, "kernel %s ended its goroutine in block %d", s.run.prog.Name, *at))
		}
		return
	}
	where := panicPlace()
	if cause, ok := v.(error); ok {
		s.badBlock(*at, status.Errorf(codeOf(cause), "kernel %s panicked in block %d%s: %w", s.run.prog.Name, *at, where, cause))
		return
	}
	s.badBlock(*at, status.Errorf(status.ErrRuntimeFail, "kernel %s panicked in block %d%s: %v", s.run.prog.Name, *at, where, v))
}

// coded gives an error of a kernel a code when it has none of its own.
func coded(err error) error {
	if _, ok := errors.AsType[*status.OpError](err); ok {
		return err
	}
	return &status.OpError{Code: codeOf(err), Err: err}
}

// codeOf returns err's code, ErrRuntimeFail for an error without one.
func codeOf(err error) status.Code {
	if e, ok := errors.AsType[*status.OpError](err); ok {
		return e.Code
	}
	if c, ok := errors.AsType[status.Code](err); ok {
		return c
	}
	return status.ErrRuntimeFail
}

// panicPlace returns " at file:line" of the innermost function outside Go's
// runtime that panicked, for a recovering function that was deferred directly.
func panicPlace() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "runtime.") && f.File != "" {
			return fmt.Sprintf(" at %s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
