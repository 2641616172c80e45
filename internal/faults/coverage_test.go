package faults_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
)

// knownFaults reads the list of faults.
func knownFaults(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, "spec", "known-faults.md"))
	require.NoError(t, err)
	return string(text)
}

// testedRows are the rows that a test function is named after.
func testedRows(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	name := regexp.MustCompile(`^Test([A-H]\d\d)$`)
	rows := map[string]bool{}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				if m := name.FindStringSubmatch(fn.Name.Name); m != nil {
					rows[m[1]] = true
				}
			}
		}
	}
	return rows
}

// documentedRows reads the rows of two sections of the package comment.
func documentedRows(t *testing.T) (covered, notYet map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(text), "# Covered here")
	require.True(t, ok)
	list, rest, ok := strings.Cut(rest, "Some rows tell")
	require.True(t, ok)
	_, missing, ok := strings.Cut(rest, "# Not yet")
	require.True(t, ok)
	covered, notYet = map[string]bool{}, map[string]bool{}
	for item := range strings.SplitSeq(strings.ReplaceAll(list, "\n//     ", " "), "- ") {
		for _, n := range regexp.MustCompile(`\b\d\d\b`).FindAllString(item, -1) {
			covered[item[:1]+n] = true
		}
	}
	for _, id := range regexp.MustCompile(`\b[A-H]\d\d\b`).FindAllString(missing, -1) {
		notYet[id] = true
	}
	return covered, notYet
}

// TestEveryRowIsTested checks that each row of the sections on what is built has
// a test here, or is among those that do not apply yet, and that the package
// comment says which.
func TestEveryRowIsTested(t *testing.T) {
	tested := testedRows(t)
	covered, notYet := documentedRows(t)
	assert.Equal(t, tested, covered, "the package comment lists the tests that there are")
	rows := regexp.MustCompile(`(?m)^\| ([A-H]\d\d) \|`).FindAllStringSubmatch(knownFaults(t), -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		id := row[1]
		assert.NotEqual(t, tested[id], notYet[id], "%s is tested or listed as not applying yet", id)
	}
}
