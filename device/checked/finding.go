package checked

import (
	"goatb/device"
	"goatb/status"
)

// Kind is a sort of misuse.
type Kind string

// Kinds.
const (
	UseAfterFree Kind = "use after free"
	Deadlock     Kind = "deadlock"
	Race         Kind = "race"
	OutOfBounds  Kind = "out of bounds"
	Overlap      Kind = "overlap"
	Reuse        Kind = "reuse"
	Leak         Kind = "leak"
	Stale        Kind = "stale prefetch"
)

// Finding is one case of misuse. It is immutable.
type Finding struct {
	// Kind tells what was done wrong.
	Kind Kind
	// Text names the places that are involved.
	Text string
}

// Error gives "kind: text".
func (f *Finding) Error() string {
	if f == nil {
		return status.OK.String()
	}
	return string(f.Kind) + ": " + f.Text
}

// failure makes a finding the error of the task with the given label.
func (f *Finding) failure(code status.Code, l *device.Label) error {
	return l.Place(&status.OpError{Code: code, Err: f})
}
