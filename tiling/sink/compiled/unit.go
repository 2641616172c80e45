package compiled

import (
	"slices"

	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// Unit is a captured graph. Marks and Before have an entry for each node, nil in
// Before for nodes that the host tiles at every launch, in form v2 some of those,
// and for nodes that have no kernel.
type Unit struct {
	// Name is the graph's.
	Name string
	// Streams is the number of main streams, Main the one that others are joined to.
	Streams, Main int
	Nodes         []Node
	Marks         []sink.Mark
	Before        []*sink.Before
	Segments      []capture.Segment
}

// newUnit describes a plan. One without marks is a plan that is still to be made.
func newUnit(p *capture.Plan) (*Unit, error) {
	s := &p.Settings
	u := &Unit{Name: s.Name, Streams: s.Streams, Main: s.Main, Marks: p.Marks, Before: p.Before, Segments: p.Segments}
	ops, err := capture.Describe(p.Nodes)
	if err != nil {
		return nil, err
	}
	u.Nodes = make([]Node, len(p.Nodes))
	for i := range p.Nodes {
		if u.Nodes[i], err = describe(&p.Nodes[i], &ops[i], &s.Machine); err != nil {
			return nil, err
		}
	}
	return u, nil
}

// bind makes a plan of the unit for equal nodes, which `now` describes.
func (u *Unit) bind(now *Unit, nodes []capture.Node, s capture.Settings) (*capture.Plan, error) {
	p := u.plan(now.Nodes)
	p.Settings, p.Nodes = s, nodes
	if s.Form == sink.V2Form {
		return p, p.Wire()
	}
	if err := u.able(&s); err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, s.Name, "capture", "")
	}
	if err := s.Build.Demand(p.Ops, p.Marks); err != nil {
		return nil, err
	}
	return p, nil
}

// able asks the device whether it can do what the marks say.
func (u *Unit) able(s *capture.Settings) error {
	if s.Build.Capable == nil || !slices.ContainsFunc(u.Marks, func(m sink.Mark) bool { return m.Sunk }) {
		return nil
	}
	why, err := s.Build.Capable()
	if err != nil || why == "" {
		return err
	}
	return status.Errorf(status.ErrInvalidParam, "%w: it tiles on the device, and %s; compile it again for this device's SoC, or with %s 0", OtherTarget, why, sink.OptionName)
}

// plan is the unit as a plan that cannot be loaded, for dumps. Errors: those of
// package sink, for a unit that did not come from a file that Decode has read.
func (f *File) plan(u *Unit) (*capture.Plan, error) {
	p := u.plan(u.Nodes)
	p.Settings.Name, p.Settings.Form, p.Settings.Soc = u.Name, f.Form, f.Soc
	p.Settings.Machine, p.Settings.Streams, p.Settings.Main = f.Machine, u.Streams, u.Main
	if f.Form == sink.V2Form {
		return p, p.Wire()
	}
	return p, nil
}

// plan is what both sorts of plans share.
func (u *Unit) plan(nodes []Node) *capture.Plan {
	p := &capture.Plan{Ops: make([]sink.Op, len(nodes)), Marks: u.Marks, Before: u.Before, Segments: u.Segments}
	for i := range nodes {
		p.Ops[i] = nodes[i].Op
	}
	return p
}

// Plans are the units as plans that cannot be loaded, for dumps.
func (f *File) Plans() ([]*capture.Plan, error) {
	out := make([]*capture.Plan, len(f.Units))
	for i, u := range f.Units {
		var err error
		if out[i], err = f.plan(u); err != nil {
			return nil, err
		}
	}
	return out, nil
}
