package llama

import (
	"fmt"

	"goatb/atb"
)

// SetUp sets up the operations of a Forward of a shape, for sequences that are not
// there yet, and returns them: for compilers and tools. Nothing runs. The next
// SetUp or Forward sets them up anew. Errors: a closed session or model, less than
// one row, more wanted rows than rows, and those of the operations.
func (s *Session) SetUp(rows, want int) ([]*atb.Op, error) {
	switch {
	case s == nil || s.m == nil:
		return nil, fmt.Errorf("set up: the session is nil or zero: make one with NewSession")
	case s.closed || s.m.closed:
		return nil, fmt.Errorf("set up: the session or its model is closed")
	case rows < 1 || want < 1 || want > rows:
		return nil, fmt.Errorf("set up: want at least 1 row and 1 wanted row among them, got %d and %d", rows, want)
	}
	b, err := s.batch(rows, want)
	if err != nil {
		return nil, err
	}
	for i := range b.contexts {
		b.contexts[i] = 1
	}
	s.last = b
	if _, err := b.setup(s); err != nil {
		return nil, err
	}
	return s.stages, nil
}
