package conformance

import (
	"fmt"
	"os"
	"strings"
)

// Stale lists rows whose expectation does not hold, with the reason, by suite
// and case number. A nil Stale lists none.
type Stale map[[2]string]string

// ReadStale reads a file of tab separated lines: suite, case number, reason. The
// first line is a header.
func ReadStale(path string) (Stale, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := Stale{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if n == 1 || line == "" {
			continue
		}
		f := strings.SplitN(line, "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("%s:%d: want suite, case number and reason separated by tabs, got %q", path, n, line)
		}
		s[[2]string{f[0], f[1]}] = f[2]
	}
	return s, nil
}

// reason returns why a row is left out, "" when it is not.
func (s Stale) reason(suite, number string) string { return s[[2]string{suite, number}] }
