package conformance

import (
	"fmt"
	"slices"
	"strings"

	"goatb/internal/spelling"
	"goatb/tensor"
)

// NoMatchError says that a filter chooses nothing.
type NoMatchError struct {
	// Filter is "op" or "case", Value what it was given.
	Filter, Value string
	// Known lists what it could choose, where that is not too much.
	Known []string
}

// Error names the filter, its value and the values there are, the nearest first.
func (e *NoMatchError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("%s %q: nothing of that name is there", e.Filter, e.Value)
	}
	return fmt.Sprintf("%s %q: nothing of that name is there, only %s", e.Filter, e.Value, spelling.List(e.Value, e.Known))
}

// filter chooses by operation and by a part of the name.
type filter struct {
	ops  []string
	part string
}

// wants applies both filters.
func (f *filter) wants(op, text string) bool { return f.wantsOp(op) && strings.Contains(text, f.part) }

func (f *filter) wantsOp(op string) bool {
	return len(f.ops) == 0 || slices.ContainsFunc(f.ops, func(name string) bool { return sameOp(name, op) })
}

func sameOp(name, op string) bool {
	trim := func(s string) string { return strings.TrimSuffix(strings.ToLower(s), "operation") }
	return trim(name) == trim(op)
}

// named is what filters look at.
type named struct{ op, text string }

// check refuses filters that choose nothing of all: an operation that none has,
// or a part that no name of the chosen operations has.
func (f *filter) check(all []named) error {
	var ops []string
	some := len(all) == 0
	for _, n := range all {
		if n.op != "" && !slices.Contains(ops, n.op) {
			ops = append(ops, n.op)
		}
		some = some || f.wants(n.op, n.text)
	}
	slices.Sort(ops)
	for _, name := range f.ops {
		if !slices.ContainsFunc(ops, func(op string) bool { return sameOp(name, op) }) {
			return &NoMatchError{"op", name, ops}
		}
	}
	if !some {
		return &NoMatchError{"case", f.part, nil}
	}
	return nil
}

// FilterMatrix chooses combinations by operation and by a part of their names,
// as Options choose cases. Errors: NoMatchError.
func FilterMatrix(all []Combination, ops []string, part string) ([]Combination, error) {
	f := filter{ops, part}
	var have []named
	for i := range all {
		have = append(have, named{all[i].Op, all[i].Name})
	}
	if err := f.check(have); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(c Combination) bool { return !f.wants(c.Op, c.Name) }), nil
}

// source is a file of a run: the rows of a suite, or the one of a golden case.
type source struct {
	path string
	rows []Row
	// err says why the file cannot be read.
	err error
}

// golden reports whether it is a golden case.
func (s *source) golden() bool { return !strings.HasSuffix(s.path, ".csv") }

// sources reads what there is to run, without the data of golden cases. A path
// that is a file must be readable and have rows; all files together must have
// some.
func sources(paths, files []string) ([]source, error) {
	var all []source
	found := false
	for _, f := range files {
		s := source{path: f}
		if s.golden() {
			s.rows, s.err = readHeader(f)
		} else {
			s.rows, s.err = ReadSuite(f)
		}
		named := slices.Contains(paths, f)
		if s.err != nil && named {
			return nil, s.err
		}
		if s.err == nil && len(s.rows) == 0 && named {
			return nil, fmt.Errorf("%s has no rows: a suite begins with a line of column names split by |, with at least %s", f, strings.Join(mustHave, ", "))
		}
		found = found || len(s.rows) > 0 || s.err != nil
		all = append(all, s)
	}
	if !found {
		return nil, fmt.Errorf("no cases in %s: want suites (.csv) or golden cases (.safetensors)", strings.Join(paths, ", "))
	}
	return all, nil
}

// readHeader reads the row of a golden case.
func readHeader(path string) ([]Row, error) {
	f, err := tensor.OpenSafetensors(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	meta := f.Metadata()
	if meta["OpName"] == "" {
		return nil, fmt.Errorf("%s: no metadata of a golden case", path)
	}
	return []Row{{Suite: meta["Suite"], fields: meta}}, nil
}

// names lists what filters choose from.
func names(all []source) []named {
	var out []named
	for i := range all {
		for j := range all[i].rows {
			r := &all[i].rows[j]
			out = append(out, named{r.Op(), r.text()})
		}
	}
	return out
}

// text is what a part of a name is looked for in.
func (r *Row) text() string { return r.Suite + " " + r.Field("CaseNum") + " " + r.Field("CaseName") }
