package profile

import (
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"

	"goatb/internal/boundedfile"
	"goatb/internal/strictjson"
	"goatb/status"
)

//go:embed data/*.json
var builtin embed.FS

// file is a profile as it is written down. Base names a built-in profile whose
// parameters hold where the file gives none.
type file struct {
	Schema int     `json:"schema"`
	Name   string  `json:"name"`
	Base   string  `json:"base,omitempty"`
	Chip   string  `json:"chip"`
	Soc    string  `json:"soc,omitempty"`
	About  string  `json:"about"`
	Params []Param `json:"params"`
}

// Builtin lists the names of the built-in profiles, the default first.
func Builtin() []string { return []string{"ascend910b", "ascend910b4", "ascend310p", "gpu"} }

// ByName returns a built-in profile, or reads the file of that name. Errors:
// ErrInvalidParam for a name that is neither, and those of Parse.
func ByName(name string) (*Profile, error) {
	if slices.Contains(Builtin(), name) {
		b, err := builtin.ReadFile("data/" + name + ".json")
		if err != nil {
			return nil, err
		}
		return Parse(b)
	}
	b, err := boundedfile.Read(name, boundedfile.Text)
	if os.IsNotExist(err) {
		return nil, status.Errorf(status.ErrInvalidParam, "profile %q: want one of %s, or a file", name, strings.Join(Builtin(), ", "))
	}
	if err != nil {
		return nil, status.Errorf(status.ErrInvalidParam, "profile: %w", err)
	}
	p, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", name, err)
	}
	return p, nil
}

// Parse reads a profile: JSON with schema 1, a name, the chip, and a list of
// parameters with name, unit, value, basis and source. Without "base" it has to
// be complete. Errors: ErrInvalidParam that lists everything that is wrong.
func Parse(b []byte) (*Profile, error) {
	var f file
	if err := strictjson.Decode(b, &f); err != nil {
		return nil, status.Errorf(status.ErrInvalidParam, "profile: %w", err)
	}
	p := &Profile{Name: f.Name, Chip: f.Chip, Soc: f.Soc, About: f.About, params: make([]Param, len(table))}
	if f.Base != "" {
		if !slices.Contains(Builtin(), f.Base) {
			return nil, status.Errorf(status.ErrInvalidParam, "profile: base: want one of %s, got %q", strings.Join(Builtin(), ", "), f.Base)
		}
		base, err := ByName(f.Base)
		if err != nil {
			return nil, err
		}
		copy(p.params, base.params)
		if p.Soc == "" {
			p.Soc = base.Soc
		}
	}
	if bad := p.fill(&f); len(bad) > 0 {
		return nil, status.Errorf(status.ErrInvalidParam, "profile %q: %s", f.Name, strings.Join(bad, "; "))
	}
	return p, nil
}

// fill takes over a file's parameters and lists what is wrong.
func (p *Profile) fill(f *file) (bad []string) {
	if f.Schema != 1 {
		bad = append(bad, fmt.Sprintf("want schema 1, got %d", f.Schema))
	}
	if f.Name == "" || f.Chip == "" {
		bad = append(bad, "want a name and a chip")
	}
	seen := map[string]bool{}
	for _, x := range f.Params {
		i, err := indexOf(x.Name)
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		if seen[x.Name] {
			bad = append(bad, x.Name+" is there twice")
		}
		seen[x.Name] = true
		bad = append(bad, table[i].wrong(&x)...)
		p.params[i] = x
	}
	for i := range table {
		if p.params[i].Name == "" {
			bad = append(bad, fmt.Sprintf("%s is missing", table[i].name))
		}
	}
	return bad
}

// wrong lists what is wrong with a parameter of a file.
func (s *spec) wrong(x *Param) (bad []string) {
	if x.Unit != s.unit {
		bad = append(bad, fmt.Sprintf("%s: want unit %q, got %q", x.Name, s.unit, x.Unit))
	}
	if bases := []Basis{Vendor, Measured, Derived, Estimate, Given}; !slices.Contains(bases, x.Basis) {
		bad = append(bad, fmt.Sprintf("%s: want a basis of %v, got %q", x.Name, bases, x.Basis))
	}
	if x.Source == "" {
		bad = append(bad, x.Name+": want a source")
	}
	if x.Range != [2]float64{} && (x.Range[0] > x.Value || x.Range[1] < x.Value) {
		bad = append(bad, fmt.Sprintf("%s: %g lies outside its range of %g to %g", x.Name, x.Value, x.Range[0], x.Range[1]))
	}
	if err := s.check(x.Value); err != nil {
		bad = append(bad, err.Error())
	}
	return bad
}
