package sink

import (
	"fmt"
	"io"
	"strings"
)

// Attributes of a judged operation, as dumps name them.
const (
	attrDepends = "_dynamic_tiling_depend_op"
	attrSunk    = "_tiling_sink_op"
	attrUnknown = "_force_unknown_shape"
)

// Gate is what kept an operation's tiling on the host.
type Gate uint8

// Gates.
const (
	// NoGate is that of operations that are sunk, or that nobody asked about.
	NoGate Gate = iota
	// UnknownShape is that of operations whose shapes are not known.
	UnknownShape
	// OptionGate is the option, ChipGate the chip, OperatorGate the kernel.
	OptionGate
	ChipGate
	OperatorGate
	// RefreshGate is that of operations whose addresses cannot be refreshed.
	RefreshGate
)

// String gives the gate in lower case.
func (g Gate) String() string {
	return [...]string{"none", "unknown shape", "option", "chip", "operator", "refresh"}[g%6]
}

// Mark is what the gates decided about an operation.
type Mark struct {
	// Depends says that the tiling reads values that are not known when the graph
	// is compiled. Without it the operation is tiled once and stays as it is.
	Depends bool
	// Sunk says that the tiling runs on the device.
	Sunk bool
	// Unknown says that the operation is tiled on the host at every execution, so
	// that it splits a captured graph.
	Unknown bool
	// Gate and Reason tell why an operation that depends is not sunk. A node that
	// is no kernel has a reason and no gate.
	Gate   Gate
	Reason string
}

// String lists the attributes, with the reason.
func (m Mark) String() string {
	var s []string
	for _, a := range [...]struct {
		set  bool
		name string
	}{{m.Depends, attrDepends}, {m.Sunk, attrSunk}, {m.Unknown, attrUnknown}} {
		if a.set {
			s = append(s, a.name)
		}
	}
	if s == nil {
		s = []string{"-"}
	}
	switch {
	case m.Gate != NoGate:
		s = append(s, "("+m.Gate.String()+": "+m.Reason+")")
	case m.Reason != "":
		s = append(s, "("+m.Reason+")")
	}
	return strings.Join(s, " ")
}

// WriteMarks writes a line for each operation: id, type, name, mark.
func WriteMarks(w io.Writer, ops []Op, marks []Mark) error {
	for i := range ops {
		if _, err := fmt.Fprintf(w, "%d %s %s: %s\n", ops[i].ID, ops[i].Type, ops[i].Name, marks[i]); err != nil {
			return err
		}
	}
	return nil
}
