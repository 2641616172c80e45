package llama

import (
	"fmt"

	"goatb/atb"
)

// SetUp sets up the operations of a Forward of a shape, for sequences that are not
// there yet, and returns them: for compilers and tools. Nothing runs. The next
// SetUp or Forward sets them up anew. Errors: a closed session or model, less than
// one row, more wanted rows or sequences than rows, and those of the operations.
func (s *Session) SetUp(shape Shape) ([]*atb.Op, error) {
	switch {
	case s == nil || s.m == nil:
		return nil, fmt.Errorf("set up: the session is nil or zero: make one with NewSession")
	case s.closed || s.m.closed:
		return nil, fmt.Errorf("set up: the session or its model is closed")
	case shape.Want < 1 || shape.Want > shape.Rows:
		return nil, fmt.Errorf("set up: want at least 1 row and 1 wanted row among them, got %d and %d", shape.Rows, shape.Want)
	case shape.Sequences < 1 || shape.Sequences > shape.Rows:
		return nil, fmt.Errorf("set up: want 1 to %d sequences, as many as rows, got %d", shape.Rows, shape.Sequences)
	}
	b, err := s.batch(shape)
	if err != nil {
		return nil, err
	}
	for i := range b.contexts {
		b.contexts[i], b.queries[i] = 1, 1
	}
	s.last = b
	if _, err := b.setup(s); err != nil {
		return nil, err
	}
	return s.stages[b.kind()], nil
}
