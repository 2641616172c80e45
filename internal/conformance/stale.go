package conformance

import (
	"fmt"
	"strings"

	"goatb/internal/boundedfile"
)

// Stale lists rows of suites whose expectation does not hold, with the reason,
// by suite and case number. Where a suite uses a number more than once, the last
// row with it is meant. Golden cases hold the data that really ran and are never
// stale. A nil Stale lists none.
type Stale map[[2]string]string

// ReadStale reads a file of tab separated lines: suite, case number, reason. The
// first line is a header.
func ReadStale(path string) (Stale, error) {
	text, err := boundedfile.Read(path, boundedfile.Text)
	if err != nil {
		return nil, err
	}
	s := Stale{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if n == 1 && !strings.HasPrefix(line, "suite\t") {
			return nil, fmt.Errorf("%s:1: want a header of suite, case and reason separated by tabs, got %q", path, line)
		}
		if n == 1 || line == "" {
			continue
		}
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("%s:%d: want suite, case number and reason separated by tabs, got %q", path, n, line)
		}
		s[[2]string{f[0], f[1]}] = f[2]
	}
	if n == 0 {
		return nil, fmt.Errorf("%s is empty: want a header of suite, case and reason separated by tabs", path)
	}
	return s, nil
}

// of returns the reasons why rows of a suite are left out, by row index.
func (s Stale) of(rows []Row) map[int]string {
	last := map[string]int{}
	for i := range rows {
		last[rows[i].Field("CaseNum")] = i
	}
	reasons := map[int]string{}
	for number, i := range last {
		if why, ok := s[[2]string{rows[i].Suite, number}]; ok {
			reasons[i] = why
		}
	}
	return reasons
}
