package status

import (
	"errors"
	"fmt"
	"strings"
)

// OpError is the error of every call of the library: what went wrong (Code,
// Err) and where (Op, Stage, Node, Tensor). Empty place fields are left out of
// the text. An OpError is immutable once returned to a caller. A nil *OpError is
// no error.
type OpError struct {
	// Code is the outcome.
	Code Code
	// Also is a second code that errors.Is accepts; OK means none.
	Also Code
	// Op names the operation, Stage the call (create, infer, setup, execute).
	Op, Stage string
	// Node names the node inside a graph or the kernel inside an operation.
	Node string
	// Tensor names the tensor, such as "input 1 (gamma)".
	Tensor string
	// Err says what was wanted and what was got.
	Err error
}

// Errorf makes an OpError with a code and a text; the place is added with In
// and At while the error travels up. The text follows fmt.Errorf, with %w.
func Errorf(code Code, format string, args ...any) *OpError {
	return &OpError{Code: code, Err: fmt.Errorf(format, args...)}
}

// Error gives "op: stage: node: tensor: what".
func (e *OpError) Error() string {
	if e == nil {
		return OK.String()
	}
	var b strings.Builder
	for _, part := range [...]string{e.Op, e.Stage, e.Node, e.Tensor} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	if e.Err != nil {
		b.WriteString(e.Err.Error())
		b.WriteString(" (")
		b.WriteString(e.Code.String())
		b.WriteByte(')')
	} else {
		b.WriteString(e.Code.String())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Is reports whether target is the error's code, or a code that it also
// stands for.
func (e *OpError) Is(target error) bool {
	code, ok := target.(Code)
	if !ok || e == nil {
		return false
	}
	return code == e.Code || (e.Also != OK && code == e.Also) || (code == ErrInvalidParam && e.Code.alsoParam())
}

// Or makes the error match a second code as well and returns it.
func (e *OpError) Or(also Code) *OpError {
	if e != nil {
		e.Also = also
	}
	return e
}

// On names the tensor, where none is named yet, and returns the error.
func (e *OpError) On(tensor string) *OpError {
	if e != nil && e.Tensor == "" {
		e.Tensor = tensor
	}
	return e
}

// Place adds operation, stage and node to err where they are still empty. An
// error of another type is wrapped under the code in its chain or, when it has
// none, under code. A nil err stays nil, also a nil *OpError.
func Place(err error, code Code, op, stage, node string) error {
	if err == nil {
		return nil
	}
	e, ok := err.(*OpError)
	if !ok {
		if inner, found := chainCode(err); found {
			code = inner
		}
		return &OpError{Code: code, Op: op, Stage: stage, Node: node, Err: err}
	}
	if e == nil {
		return nil
	}
	out := *e
	if out.Op == "" {
		out.Op = op
	}
	if out.Stage == "" {
		out.Stage = stage
	}
	if out.Node == "" {
		out.Node = node
	}
	return &out
}

// CodeOf returns the code of err: OK for nil, the code of the first OpError or
// Code in its chain, and ErrInternal for a foreign error.
func CodeOf(err error) Code {
	if err == nil {
		return OK
	}
	if code, ok := chainCode(err); ok {
		return code
	}
	return ErrInternal
}

// chainCode finds the code of the first OpError in err's chain, else of the
// first Code.
func chainCode(err error) (Code, bool) {
	if e, ok := errors.AsType[*OpError](err); ok {
		if e == nil {
			return OK, true
		}
		return e.Code, true
	}
	return errors.AsType[Code](err)
}
