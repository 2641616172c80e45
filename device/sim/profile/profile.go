// Package profile holds the costs that the simulated device charges: named
// parameters with unit, value, basis and source, as data. Four profiles are
// built in; others come from a user's file, and single values can be changed.
//
// A profile states what it is: public figures and estimates, not a measurement
// of the reader's device.
package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"goatb/internal/spelling"
	"goatb/status"
)

// Basis tells where a value comes from.
type Basis string

// Bases.
const (
	// Vendor is a figure of the vendor or of a configuration file.
	Vendor Basis = "vendor"
	// Measured is a published measurement of somebody else.
	Measured Basis = "measured"
	// Derived is computed from vendor's or measured figures.
	Derived Basis = "derived"
	// Estimate has no public figure behind it.
	Estimate Basis = "estimate"
	// Given is a value that the user has set.
	Given Basis = "given"
)

// Param is one cost.
type Param struct {
	// Name and Unit are those of the table that Names lists.
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Value is in Unit. Range is where an estimate may lie, none when both ends
	// are 0.
	Value float64    `json:"value"`
	Range [2]float64 `json:"range,omitzero"`
	Basis Basis      `json:"basis"`
	// Source names the document, measurement or reasoning.
	Source string `json:"source"`
}

// Profile is a complete set of parameters. It is a value: changing one does not
// change another.
type Profile struct {
	// Name is the profile's name in options, Chip what it stands for, About what
	// a reader has to know.
	Name, Chip, About string
	// Soc is the chip that task lists are made for, in the names of tiling/sink.
	Soc    string
	params []Param // one for each entry of table, in its order
}

// Check refuses a profile that ByName and Parse have not made. Error:
// ErrInvalidParam.
func (p *Profile) Check() error {
	switch {
	case p == nil:
		return status.Errorf(status.ErrInvalidParam, "want a profile, got nil")
	case len(p.params) != len(table):
		return status.Errorf(status.ErrInvalidParam, "the profile is a zero Profile: take one from ByName or Parse")
	}
	return nil
}

// Params returns the parameters in the order of the table.
func (p *Profile) Params() []Param {
	if p.Check() != nil {
		return nil
	}
	return slices.Clone(p.params)
}

// Param returns a parameter by name. Error: ErrInvalidParam for an unknown one.
func (p *Profile) Param(name string) (Param, error) {
	if err := p.Check(); err != nil {
		return Param{}, err
	}
	i, err := indexOf(name)
	if err != nil {
		return Param{}, status.Errorf(status.ErrInvalidParam, "%w", err)
	}
	return p.params[i], nil
}

// With returns a copy with one value changed, whose basis is Given. Errors:
// ErrInvalidParam for an unknown name and for a value out of the table's range.
func (p *Profile) With(name string, value float64) (*Profile, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	i, err := indexOf(name)
	if err == nil {
		err = table[i].check(value)
	}
	if err != nil {
		return nil, status.Errorf(status.ErrInvalidParam, "%w", err)
	}
	q := *p
	q.params = slices.Clone(p.params)
	q.params[i] = Param{Name: name, Unit: table[i].unit, Value: value, Basis: Given, Source: "set by the user"}
	return &q, nil
}

// Scaled returns a copy with one value multiplied, cut to the table's range: for
// sensitivities.
func (p *Profile) Scaled(name string, factor float64) (*Profile, error) {
	old, err := p.Param(name)
	if err != nil {
		return nil, err
	}
	i, _ := indexOf(name)
	t := &table[i]
	v := min(max(old.Value*factor, t.least), t.most)
	if t.whole {
		v = math.Max(1, math.Round(v))
	}
	return p.With(name, v)
}

// Estimates returns the names of the parameters that rest on estimates and are
// not 0.
func (p *Profile) Estimates() []string {
	if p.Check() != nil {
		return nil
	}
	var names []string
	for i := range p.params {
		if p.params[i].Basis == Estimate && p.params[i].Value != 0 {
			names = append(names, p.params[i].Name)
		}
	}
	return names
}

// Names lists the parameters with unit and meaning, for help and documents.
func Names() []Meaning {
	list := make([]Meaning, len(table))
	for i := range table {
		list[i] = Meaning{table[i].name, table[i].unit, table[i].meaning}
	}
	return list
}

// Meaning describes a parameter.
type Meaning struct{ Name, Unit, Text string }

func indexOf(name string) (int, error) {
	i := slices.IndexFunc(table, func(s spec) bool { return s.name == name })
	if i < 0 {
		return 0, fmt.Errorf("there is no cost parameter %q, perhaps one of %s", name, near(name))
	}
	return i, nil
}

// near suggests parameters that share a word with a name, or are spelt like it.
func near(name string) string {
	var all, like []string
	for i := range table {
		all = append(all, table[i].name)
		for word := range strings.SplitSeq(name, "_") {
			if len(word) > 2 && strings.Contains(table[i].name, word) && !slices.Contains(like, table[i].name) {
				like = append(like, table[i].name)
			}
		}
	}
	if len(like) == 0 || len(like) > 8 {
		like = spelling.Nearest(name, all)[:3]
	}
	return strings.Join(like, ", ")
}

// check refuses a value out of range.
func (s *spec) check(v float64) error {
	if math.IsNaN(v) || v < s.least || v > s.most {
		return fmt.Errorf("%s: want %g to %g%s, got %g", s.name, s.least, s.most, unitText(s.unit), v)
	}
	if s.whole && v != math.Trunc(v) {
		return fmt.Errorf("%s: want a whole number, got %g", s.name, v)
	}
	return nil
}

func unitText(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}
