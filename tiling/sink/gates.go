package sink

import (
	"strings"

	"goatb/kernel"
	"goatb/status"
)

// Build is what the gates ask besides the operations.
type Build struct {
	// Option is the option's setting, see Options.Resolve.
	Option Choice
	// Offline says that the graph is compiled for a device that is not there: it
	// is then not asked what it can do.
	Offline bool
	// Capable asks the device why it cannot update queued tasks, "" where it can.
	// It is called at most once, and only where an answer matters.
	Capable func() (why string, err error)
	// Require makes it an error that an operation whose tiling reads values is
	// tiled on the host.
	Require bool
}

// judge is one run of the gates over a graph.
type judge struct {
	*Build
	asked bool
	why   string
}

// Judge runs the gates over the operations of a graph. An operation that misses
// a gate is tiled on the host, with the reason in its mark.
//
// Errors name the operation: a tiling that reads values without a placement on
// the host (ErrInvalidParam); a device that does not answer (its error); with
// Require, any that is not sunk (ErrInvalidParam); and those of Sinks.
func (b *Build) Judge(ops []Op) ([]Mark, error) {
	j := judge{Build: b}
	marks := make([]Mark, len(ops))
	for i := range ops {
		m, err := j.judge(&ops[i])
		if err != nil {
			return nil, err
		}
		marks[i] = m
	}
	if err := b.Demand(ops, marks); err != nil {
		return nil, err
	}
	for i := range ops {
		if _, err := Sinks(&ops[i], &marks[i]); err != nil {
			return nil, err
		}
	}
	return marks, nil
}

// Demand refuses marks that leave a tiling which reads values on the host, where
// Require is set (ErrInvalidParam).
func (b *Build) Demand(ops []Op, marks []Mark) error {
	for i, m := range marks {
		if b.Require && m.Gate != NoGate {
			return ops[i].fail(status.ErrInvalidParam, "gate", "its tiling must run on the device and does not: %s: %s", m.Gate, m.Reason)
		}
	}
	return nil
}

// judge decides about one operation: mark, host placement, option, chip,
// operator, address refresh.
func (j *judge) judge(o *Op) (Mark, error) {
	if o.HostOnly != "" {
		return Mark{Unknown: true, Reason: o.HostOnly}, nil
	}
	m := Mark{Depends: o.tilingDepends()}
	if o.Unknown {
		m.Gate, m.Reason = UnknownShape, "a shape is not known before the graph runs"
		return m, nil
	}
	if !m.Depends {
		return m, nil
	}
	if on := o.Registration.TileOn; !on.Has(kernel.OnHost) {
		return m, o.fail(status.ErrInvalidParam, "gate", "its tiling reads values: want placement %s, got %s", kernel.OnHost, on)
	}
	if !j.Option.On {
		return m.miss(OptionGate, OptionName+" is off ("+j.Option.Level+")"), nil
	}
	switch why, err := j.chip(); {
	case err != nil:
		return m, status.Place(err, status.ErrDeviceFail, o.Type, "gate", o.Name)
	case why != "":
		return m.miss(ChipGate, why), nil
	}
	if on := o.Registration.TileOn; !on.Has(kernel.OnAICPU) {
		return m.miss(OperatorGate, "want placement "+kernel.OnAICPU.String()+", got "+on.String()), nil
	}
	if o.FixedAddresses {
		return m.miss(RefreshGate, "its addresses cannot be refreshed"), nil
	}
	m.Sunk = true
	return m, nil
}

// miss is the mark of an operation that is tiled on the host.
func (m Mark) miss(g Gate, reason string) Mark {
	m.Unknown, m.Gate, m.Reason = true, g, reason
	return m
}

// chip asks the device once; "" means that it can.
func (j *judge) chip() (string, error) {
	if j.Offline {
		return "", nil
	}
	if j.asked {
		return j.why, nil
	}
	if j.Capable == nil {
		return "", status.Errorf(status.ErrDeviceFail, "no device to ask whether it updates queued tasks")
	}
	var err error
	j.why, err = j.Capable()
	j.asked = err == nil
	return j.why, err
}

// tilingDepends reports whether the tiling reads a connected input that is no
// constant, or any at all where a shape is unknown.
func (o *Op) tilingDepends() bool {
	for i := range o.Inputs {
		if in := &o.Inputs[i]; o.depends(in) && (o.Unknown || !in.Const) {
			return true
		}
	}
	return false
}

// Sinks repeats the decision in a later stage: it reports whether the operation
// is sunk. A sunk operation without compile information (ErrInternal) and one
// that may run for ever (ErrInvalidParam) are errors.
func Sinks(o *Op, m *Mark) (bool, error) {
	if !m.Sunk || m.Unknown || o.Unknown {
		return false, nil
	}
	if o.CompileInfo == "" {
		return false, o.fail(status.ErrInternal, "gate", "it is sunk and has no compile information")
	}
	if o.NeverTimeout {
		return false, o.fail(status.ErrInvalidParam, "gate", "its kernel never times out: it cannot be tiled on the device")
	}
	return true, nil
}

// Segment is a run of operations [First, Last] of a graph's list.
type Segment struct {
	First, Last int
	// Host says that the segment is one operation that is tiled on the host;
	// other segments are captured.
	Host bool
}

// Split cuts a graph into segments that are captured and operations that are
// tiled on the host between them. A graph with an unknown shape anywhere is not
// captured at all, and has no segments.
func Split(ops []Op, marks []Mark) []Segment {
	var out []Segment
	for i := range ops {
		if ops[i].Unknown {
			return nil
		}
		host := marks[i].Unknown
		if n := len(out); n > 0 && !host && !out[n-1].Host {
			out[n-1].Last = i
			continue
		}
		out = append(out, Segment{i, i, host})
	}
	return out
}

// Reasons lists the operations that are tiled on the host, a line each, for
// errors and statistics; "" when there is none.
func Reasons(ops []Op, marks []Mark) string {
	var b strings.Builder
	for i, m := range marks {
		if m.Gate != NoGate {
			b.WriteString(ops[i].Name + " (" + ops[i].Type + "): " + m.Gate.String() + ": " + m.Reason + "\n")
		}
	}
	return b.String()
}
