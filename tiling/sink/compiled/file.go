package compiled

import (
	"cmp"

	"goatb/kernel"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// File is a compilation: captured graphs for one target. Contexts may share one
// that nobody changes any more.
type File struct {
	// Build names the build of the library that made the file, see BuildName.
	Build string
	// Soc, Form and Machine are the target.
	Soc     sink.Profile
	Form    sink.Form
	Machine kernel.Machine
	// Offline says that no device was asked whether it updates queued tasks.
	Offline bool
	// Source is what the graphs were made from, in the terms of whoever made the
	// file; this package does not read it.
	Source string
	Units  []*Unit
}

// New makes an empty file for a target.
func New(soc sink.Profile, form sink.Form, machine kernel.Machine, offline bool) *File {
	return &File{Build: BuildName(), Soc: soc, Form: form, Machine: machine, Offline: offline}
}

// Add adds a captured graph, unless the file has an equal one. Errors: a plan for
// another target (ErrInvalidParam).
func (f *File) Add(p *capture.Plan) error {
	s := &p.Settings
	if err := f.target(s.Form, &s.Soc, &s.Machine); err != nil {
		return status.Place(err, status.ErrInvalidParam, s.Name, "compile", "")
	}
	u, err := newUnit(p)
	if err != nil {
		return err
	}
	for _, have := range f.Units {
		if have.Name == u.Name && have.differs(u).why == "" {
			return nil
		}
	}
	f.Units = append(f.Units, u)
	return nil
}

// Has reports whether the file has a graph of that name.
func (f *File) Has(name string) bool {
	for _, u := range f.Units {
		if u.Name == name {
			return true
		}
	}
	return false
}

// Fits checks that the file is for a target. Errors are ErrInvalidParam and say
// what to change: OtherVersion for another build of the library, OtherTarget for
// another form, chip or machine.
func (f *File) Fits(form sink.Form, soc *sink.Profile, m *kernel.Machine) error {
	if f.Soc.Name == "" {
		return status.Errorf(status.ErrInvalidParam, "the compilation is zero: take one of NewCompiler or DecodeCompiled")
	}
	if b := BuildName(); f.Build != b {
		return status.Errorf(status.ErrInvalidParam, "%w: want build %s, got %s; compile it again with this program", OtherVersion, named(b), named(f.Build))
	}
	return f.target(form, soc, m)
}

// named is the name of a build for people.
func named(build string) string { return cmp.Or(build, "without a version (go run, go test)") }

func (f *File) target(form sink.Form, soc *sink.Profile, m *kernel.Machine) error {
	switch {
	case !f.Soc.Same(soc):
		return status.Errorf(status.ErrInvalidParam, "%w: it is for SoC %s (prefetch %d), the context has %s (prefetch %d); compile it again for that one, or run for SoC %s",
			OtherTarget, f.Soc.Name, f.Soc.Prefetch, soc.Name, soc.Prefetch, f.Soc.Name)
	case f.Form != form:
		return status.Errorf(status.ErrInvalidParam, "%w: it is of form %s, the context has %s; compile it again in that form, or run in form %s",
			OtherTarget, f.Form, form, f.Form)
	case f.Machine != *m:
		return status.Errorf(status.ErrInvalidParam, "%w: its tilings are for a machine of %s, the device has %s; compile it again for this one, with as many workers",
			OtherTarget, machineText(&f.Machine), machineText(m))
	}
	return nil
}

// Plan returns the captured form of planned nodes as the file has it, with the
// settings at hand. It computes no tiling. Where the file has no graph of the
// settings' name there is no plan and no error.
//
// Errors name the graph, and the node where there is one: OtherGraph for a graph
// that differs (ErrInvalidGraph), with the first difference to the unit that
// comes closest; OtherTarget for a device that cannot update queued tasks, where
// some tiling would need that, and ErrInvalidParam where the settings demand that
// all tilings which read values run on the device and some do not.
func (f *File) Plan(nodes []capture.Node, s capture.Settings) (*capture.Plan, error) {
	if !f.Has(s.Name) {
		return nil, nil
	}
	now, err := newUnit(&capture.Plan{Settings: s, Nodes: nodes})
	if err != nil {
		return nil, err
	}
	var closest difference
	units := 0
	for _, u := range f.Units {
		if u.Name != s.Name {
			continue
		}
		d := u.differs(now)
		if d.why == "" {
			return u.bind(now, nodes, s)
		}
		if units++; units == 1 || d.at > closest.at {
			closest = d
		}
	}
	err = status.Errorf(status.ErrInvalidGraph, "%w: none of %d compiled for it fits; the closest differs: %s; compile it again as it is now", OtherGraph, units, closest.why)
	return nil, status.Place(err, status.ErrInvalidGraph, s.Name, "capture", closest.node)
}
