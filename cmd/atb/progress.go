package main

import (
	"fmt"
	"io"
	"time"
)

// Progress lines come only when work takes long: the first after quiet, then
// one every interval.
const (
	progressQuiet    = 2 * time.Second
	progressInterval = time.Second
)

// progress tells people that long work goes on.
type progress struct {
	w    io.Writer
	next time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, next: time.Now().Add(progressQuiet)} }

// due reports whether a line is wanted now.
func (p *progress) due() bool {
	now := time.Now()
	if now.Before(p.next) {
		return false
	}
	p.next = now.Add(progressInterval)
	return true
}

// printf prints a line. Call it when due says so.
func (p *progress) printf(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }
