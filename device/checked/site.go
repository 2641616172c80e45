package checked

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"goatb/device"
)

// site is where a call into the layer came from.
type site struct{ pcs [24]uintptr }

// here returns the stack of the exported method that calls it.
func here() site {
	var s site
	runtime.Callers(3, s.pcs[:])
	return s
}

// String returns file and line of the caller.
func (s *site) String() string {
	f, _ := s.frames().Next()
	return place(f)
}

// stack returns one line for each frame, indented.
func (s *site) stack() string {
	var b strings.Builder
	frames := s.frames()
	for {
		f, more := frames.Next()
		if f.Function != "" {
			fmt.Fprintf(&b, "\n    %s at %s", f.Function, place(f))
		}
		if !more {
			return b.String()
		}
	}
}

func (s *site) frames() *runtime.Frames {
	n := 0
	for n < len(s.pcs) && s.pcs[n] != 0 {
		n++
	}
	return runtime.CallersFrames(s.pcs[:n])
}

func place(f runtime.Frame) string {
	if f.File == "" {
		return "an unknown place"
	}
	return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
}

// origin says which task something is about.
type origin struct {
	what   string // "launch of matmul/go", "copy"
	label  *device.Label
	stream int
	at     site
}

// String gives "launch of x (op: node) on stream 1 at file.go:12".
func (o *origin) String() string {
	label := ""
	if l := o.label; l != nil {
		var parts []string
		for _, p := range [...]string{l.Op, l.Node, l.Kernel} {
			if p != "" {
				parts = append(parts, p)
			}
		}
		label = " (" + strings.Join(parts, ": ") + ")"
	}
	return fmt.Sprintf("%s%s on stream %d at %s", o.what, label, o.stream, o.at.String())
}
