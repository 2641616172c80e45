package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"goatb/device/cpu"
	"goatb/device/trace"
)

// timeline gathers what --trace writes. Without a file it gathers nothing.
type timeline struct {
	file string
	rec  trace.Recorder
}

func newTimeline(file string) *timeline { return &timeline{file: file} }

// observe returns the device options that bring the device's tasks in.
func (l *timeline) observe() []cpu.Option {
	if l.file == "" {
		return nil
	}
	return []cpu.Option{cpu.WithObserver(func(t cpu.Task) {
		s := trace.Span{Row: fmt.Sprintf("stream %d", t.Stream), Name: t.Kind, Category: t.Kind, Start: t.Start, End: t.End}
		switch {
		case t.Label != nil:
			s.Name = t.Label.Kernel
			s.Args = map[string]any{"operation": t.Label.Op, "node": t.Label.Node, "blocks": t.Blocks}
		case t.Bytes > 0:
			s.Args = map[string]any{"bytes": t.Bytes}
		}
		l.rec.Add(s)
	})}
}

// host adds a span of the host.
func (l *timeline) host(name string, start time.Time, d time.Duration) {
	if l.file != "" {
		l.rec.Add(trace.Span{Row: "host", Name: name, Category: "host", Start: start, End: start.Add(d)})
	}
}

// write writes the file.
func (l *timeline) write() error {
	if l.file == "" {
		return nil
	}
	w, err := os.Create(l.file)
	if err != nil {
		return err
	}
	return errors.Join(l.rec.Write(w), w.Close())
}
