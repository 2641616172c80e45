package operation

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
)

// Profile is a set of checks: the dtype and layout tables and the limits that
// an operation's Check asks for. Profiles are data and never change.
type Profile struct {
	name string
	// rows maps a variant to its combinations; nil means that the signature's
	// native combinations hold.
	rows map[string][]Combo
	// limits maps operation and limit name to a value.
	limits map[string]map[string]int64
}

// Name returns "native" or "910b".
func (p *Profile) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Limit returns the limit of that name for an operation, and false when the
// profile has none.
func (p *Profile) Limit(op, name string) (int64, bool) {
	if p == nil {
		return 0, false
	}
	v, ok := p.limits[op][name]
	return v, ok
}

// Native is the profile of the mathematics: every dtype, head dim, block size
// and alignment that the kernels can compute.
func Native() *Profile { return nativeProfile }

var nativeProfile = &Profile{name: "native"}

// Board910B is the profile of the Ascend 910B: ATB's tables and limits.
func Board910B() *Profile { return board910B() }

//go:embed profiles
var profileFiles embed.FS

// board910B reads the embedded tables once.
var board910B = sync.OnceValue(func() *Profile {
	p, err := loadProfile(profileFiles, "910b")
	if err != nil {
		panic(err) // the embedded files are part of the program; a test reads them
	}
	return p
})

// ProfileByName returns the profile called native or 910b.
func ProfileByName(name string) (*Profile, error) {
	switch name {
	case "native":
		return Native(), nil
	case "910b":
		return Board910B(), nil
	}
	return nil, fmt.Errorf("unknown profile %q, want native or 910b", name)
}

// loadProfile reads profiles/<name>/rows.txt, one "variant: combos" a line,
// and profiles/<name>/limits/<Operation>.json.
func loadProfile(files fs.FS, name string) (*Profile, error) {
	p := &Profile{name: name, rows: map[string][]Combo{}, limits: map[string]map[string]int64{}}
	dir := path.Join("profiles", name)
	text, err := fs.ReadFile(files, path.Join(dir, "rows.txt"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		variant, combos, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if p.rows[variant], err = ParseCombos(combos); err != nil {
			return nil, fmt.Errorf("profile %s: %s: %w", name, variant, err)
		}
	}
	entries, err := fs.ReadDir(files, path.Join(dir, "limits"))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		b, err := fs.ReadFile(files, path.Join(dir, "limits", e.Name()))
		if err != nil {
			return nil, err
		}
		var l map[string]int64
		if err := json.Unmarshal(b, &l); err != nil {
			return nil, fmt.Errorf("profile %s: %s: %w", name, e.Name(), err)
		}
		p.limits[strings.TrimSuffix(e.Name(), ".json")] = l
	}
	return p, nil
}
