package conformance

import (
	"encoding/csv"
	"fmt"
	"path/filepath"
	"strings"

	"goatb/internal/boundedfile"
)

// mustHave are the columns without which a file is no suite.
var mustHave = []string{"CaseNum", "OpName", "OpParam", "ExpectedError"}

// ReadSuite reads a CSV file of rows. A file whose header lacks the columns of
// a suite, such as a table of baseline times, gives no rows. Lines that cannot
// be read as rows come back with Dirty set.
func ReadSuite(path string) ([]Row, error) {
	text, err := boundedfile.Read(path, boundedfile.Text)
	if err != nil {
		return nil, err
	}
	return parseSuite(strings.TrimSuffix(filepath.Base(path), ".csv"), string(text)), nil
}

func parseSuite(suite, text string) []Row {
	var rows []Row
	var header []string
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\r\n"), " ", "")
		if line == "" {
			continue
		}
		fields, err := splitLine(line)
		if header == nil {
			if header = fields; !isHeader(header) {
				return nil
			}
			continue
		}
		rows = append(rows, newRow(suite, len(rows), header, fields, err))
	}
	return rows
}

// splitLine splits at bars. A field that starts with a quote is quoted the CSV
// way, any other is taken as it is.
func splitLine(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '|', true, -1
	return r.Read()
}

func isHeader(header []string) bool {
	have := map[string]bool{}
	for _, h := range header {
		have[h] = true
	}
	for _, h := range mustHave {
		if !have[h] {
			return false
		}
	}
	return true
}

func newRow(suite string, index int, header, fields []string, err error) Row {
	r := Row{Suite: suite, Index: index, fields: map[string]string{}}
	for i, h := range header {
		if i < len(fields) {
			r.fields[h] = fields[i]
		}
	}
	switch {
	case err != nil:
		r.Dirty = err.Error()
	case len(fields) != len(header):
		r.Dirty = fmt.Sprintf("%d columns, the header has %d", len(fields), len(header))
	case r.Field("OpName") == "":
		r.Dirty = "no operation name"
	case r.Field("ExpectedError") == "":
		r.Dirty = "no expected outcome"
	default:
		if _, err := parseExpectation(r.Field("ExpectedError")); err != nil {
			r.Dirty = err.Error()
		}
	}
	return r
}
