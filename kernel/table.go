package kernel

import (
	"fmt"
	"path"
	"strings"

	"goatb/status"
)

// Table lists the kernels that do one job, best first, the reference last.
type Table []*Kernel

// Refusal is a kernel's reason for not taking a problem.
type Refusal struct {
	Kernel string
	Reason error
}

// Refusals is the error of a table none of whose kernels takes a problem: a
// summary by default, one line per kernel under %+v.
type Refusals []Refusal

// Error gives the summary.
func (r Refusals) Error() string {
	switch len(r) {
	case 0:
		return "no kernel takes this: the table is empty"
	case 1:
		return fmt.Sprintf("no kernel takes this: %s: %v", r[0].Kernel, r[0].Reason)
	}
	return fmt.Sprintf("none of %d kernels takes this; the last, %s: %v", len(r), r[len(r)-1].Kernel, r[len(r)-1].Reason)
}

// Format prints one line per kernel under %+v and the summary otherwise.
func (r Refusals) Format(s fmt.State, verb rune) {
	fmt.Fprint(s, r.Error())
	if verb == 'v' && s.Flag('+') {
		for _, x := range r {
			fmt.Fprintf(s, "\n\t%s: %v", x.Kernel, x.Reason)
		}
	}
}

// Select returns the first kernel of the table that f admits and that supports
// p, with the refusals of those before it. When there is none the error is
// ErrInvalidParam with every refusal.
func (t Table) Select(p *Problem, f Filter) (*Kernel, Refusals, error) {
	var refused Refusals
	for _, k := range t {
		if !f.Admits(k.name) {
			refused = append(refused, Refusal{k.name, fmt.Errorf("left out by the kernel filter %q", f.String())})
			continue
		}
		if err := k.Supports(p); err != nil {
			refused = append(refused, Refusal{k.name, err})
			continue
		}
		return k, refused, nil
	}
	return nil, refused, &status.OpError{Code: status.ErrInvalidParam, Err: refused}
}

// Filter selects kernels by name: comma separated patterns of path.Match, such
// as "matmul/go,rmsnorm/*". The zero Filter admits all; a pattern with a
// leading "!" leaves kernels out.
type Filter struct {
	text     string
	keep     []string
	leaveOut []string
}

// ParseFilter reads a filter; a malformed pattern is ErrInvalidParam.
func ParseFilter(text string) (Filter, error) {
	f := Filter{text: text}
	for _, pat := range strings.Split(text, ",") {
		pat, out := strings.CutPrefix(strings.TrimSpace(pat), "!")
		if pat == "" {
			continue
		}
		if _, err := path.Match(pat, ""); err != nil {
			return Filter{}, status.Errorf(status.ErrInvalidParam, "kernel filter %q: %w", pat, err)
		}
		if out {
			f.leaveOut = append(f.leaveOut, pat)
		} else {
			f.keep = append(f.keep, pat)
		}
	}
	return f, nil
}

// String returns the filter's text.
func (f Filter) String() string { return f.text }

// Admits reports whether the filter lets a kernel be chosen. A family that no
// keeping pattern names is admitted whole.
func (f Filter) Admits(name string) bool {
	family, _, _ := strings.Cut(name, "/")
	named, kept := false, false
	for _, pat := range f.keep {
		if fam, _, _ := strings.Cut(pat, "/"); match(fam, family) {
			named = true
			kept = kept || match(pat, name)
		}
	}
	for _, pat := range f.leaveOut {
		if match(pat, name) {
			return false
		}
	}
	return kept || !named
}

func match(pattern, name string) bool {
	ok, _ := path.Match(pattern, name)
	return ok
}
