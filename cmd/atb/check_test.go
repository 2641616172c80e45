package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// suiteText is a suite: a softmax that succeeds, one that is refused, one that
// does not do what it says, and one for another board.
const suiteText = `CaseNum|CaseName|OpName|OpParam|InNum|InDType|InFormat|InShape|OutNum|OutDType|OutFormat|OutShape|DataGenType|DataGenRange|SocVersion|ExpectedError
1 | good | SoftmaxOperation | {"axes":[0]} | 1 | float | nd | 4,5 | 1 | float | nd | 4,5 | random | 0,1 | | NO_ERROR
2 | refused | SoftmaxOperation | {"axes":[]} | 1 | float | nd | 4,5 | 1 | float | nd | 4,5 | random | 0,1 | Ascend910B | I:ERROR_INVALID_PARAM
3 | wrong | SoftmaxOperation | {"axes":[0]} | 1 | float | nd | 4,5 | 1 | float | nd | 4,5 | random | 0,1 | | I:ERROR_INVALID_PARAM
4 | other | SoftmaxOperation | {"axes":[0]} | 1 | float | nd | 4,5 | 1 | float | nd | 4,5 | random | 0,1 | Ascend950 | NO_ERROR
`

// checkSuite writes the suite and a table of stale rows and runs check on it.
func checkSuite(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	suite := filepath.Join(dir, "softmax.csv")
	stale := filepath.Join(dir, "stale.tsv")
	require.NoError(t, os.WriteFile(suite, []byte(suiteText), 0o644))
	require.NoError(t, os.WriteFile(stale, []byte("suite\tcase\treason\nsoftmax\t3\tsays so\n"), 0o644))
	keys := filepath.Join(dir, "keys.csv")
	lines := strings.Split(suiteText, "\n")
	require.NoError(t, os.WriteFile(keys, []byte(lines[0]+"\n"+strings.Replace(lines[1], "axes", "axis", 1)), 0o644))
	for i, a := range args {
		args[i] = strings.NewReplacer("SUITE", suite, "STALE", stale, "EMPTY", t.TempDir(), "KEYS", keys).Replace(a)
	}
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"check"}, args...), output{&out, &errs})
	return code, out.String(), errs.String()
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		last   string
		stderr string
	}{
		{"a failed row", []string{"SUITE"}, 1, "2 passed, 1 failed, 1 skipped", "row 2 case 3 SoftmaxOperation: failed: want I:ERROR_INVALID_PARAM, got I:NO_ERROR"},
		{"a stale row", []string{"SUITE", "--stale", "STALE"}, 0, "2 passed, 0 failed, 2 skipped", ""},
		{"a case", []string{"SUITE", "--case", "good"}, 0, "1 passed, 0 failed, 0 skipped", ""},
		{"an operation", []string{"SUITE", "--op", "softmax", "--stale", "STALE"}, 0, "2 passed, 0 failed, 2 skipped", ""},
		{"an operation that is not there", []string{"SUITE", "--op", "softmax,linear"}, 2, "", `atb: --op "linear": nothing of that name is there, only "SoftmaxOperation"`},
		{"no operation", []string{"SUITE", "--op="}, 2, "", "--op: want a value, got none"},
		{"a case that is not there", []string{"SUITE", "--case", "bad"}, 2, "", `atb: --case "bad": nothing of that name is there`},
		{"an operation that no attention is", []string{"--matrix", "--op", "linear"}, 2, "", `atb: --op "linear": nothing of that name is there, only "SelfAttentionOperation", "PagedAttentionOperation"`},
		{"a combination that is not there", []string{"--matrix", "--case", "nope"}, 2, "", `atb: --case "nope": nothing`},
		{"a list without cases", []string{"--matrix", "--list", "failed"}, 2, "", "--list and --bench want paths"},
		{"no suite", []string{"STALE", "--op", "softmax"}, 2, "", "neither .csv nor .safetensors"},
		{"a table that is no suite", []string{"testdata/buffers.csv"}, 2, "", "buffers.csv has no rows: a suite begins with a line of column names split by |, with at least CaseNum"},
		{"an empty folder", []string{"EMPTY"}, 2, "", "no cases in "},
		{"a stale table that is none", []string{"SUITE", "--stale", "SUITE"}, 2, "", "softmax.csv:1: want a header of suite, case and reason"},
		{"an empty stale table", []string{"SUITE", "--stale", "/dev/null"}, 2, "", "/dev/null is empty"},
		{"a stale folder", []string{"SUITE", "--stale", "EMPTY"}, 2, "", "--stale"},
		{"unknown parameters", []string{"KEYS", "--stale", "STALE"}, 1, "0 passed, 1 failed, 0 skipped", `failed: want NO_ERROR, got C:ERROR_INVALID_PARAM: SoftmaxOperation: create: parameters: unknown key "axis": want one of "axes"`},
		{"a small limit", []string{"SUITE", "--stale", "STALE", "--max-bytes", "100"}, 0, "1 passed, 0 failed, 2 skipped", ""},
		{"native checks", []string{"SUITE", "--stale", "STALE", "--checks", "native"}, 0, "2 passed, 0 failed, 2 skipped", ""},
		{"no path", nil, 2, "", "at least one path"},
		{"missing path", []string{"/no/such/path"}, 2, "", "no such file"},
		{"bad limit", []string{"SUITE", "--max-bytes", "0"}, 2, "", "--max-bytes"},
		{"bad list", []string{"SUITE", "--list", "all"}, 2, "", "--list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := checkSuite(t, c.args...)
			assert.Equal(t, c.code, code, stderr)
			if c.code != exitUsage {
				lines := strings.Split(strings.TrimSpace(stdout), "\n")
				assert.Equal(t, c.last, lines[len(lines)-1])
			}
			assert.Contains(t, stderr, c.stderr)
		})
	}
}

func TestCheckLists(t *testing.T) {
	_, stdout, _ := checkSuite(t, "SUITE", "--list", "skipped")
	assert.Contains(t, stdout, "row 3 case 4 SoftmaxOperation: skipped")
	assert.NotContains(t, stdout, "row 2 case 3")
	_, stdout, _ = checkSuite(t, "SUITE", "--stale", "STALE", "--list", "stage_only", "--max-bytes", "100")
	assert.Contains(t, stdout, "row 0 case 1 SoftmaxOperation: stage_only")
	assert.Contains(t, stdout, "1 too large to execute")
	_, stdout, _ = checkSuite(t, "SUITE", "--bench")
	assert.Equal(t, 3, strings.Count(stdout, "softmax.csv row"))
}

func TestCheckJSON(t *testing.T) {
	code, stdout, _ := checkSuite(t, "SUITE", "--json")
	assert.Equal(t, 1, code)
	var got struct {
		Schema  int
		Command string
		Totals  map[string]int
		Ops     []map[string]any
		Cases   []map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Equal(t, 1, got.Schema)
	assert.Equal(t, "check", got.Command)
	assert.Equal(t, map[string]int{"passed": 2, "failed": 1, "skipped": 1, "stage_only": 0}, got.Totals)
	assert.Len(t, got.Ops, 1)
	require.Len(t, got.Cases, 4)
	assert.Equal(t, "I:NO_ERROR", got.Cases[2]["got"])
	assert.Equal(t, "failed", got.Cases[2]["status"])
}

func TestCheckMatrix(t *testing.T) {
	code, stdout, _ := checkSuite(t, "--matrix")
	assert.Zero(t, code)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	assert.Greater(t, len(lines), 300)
	for _, l := range lines {
		assert.Contains(t, l, "value test")
	}
	_, stdout, _ = checkSuite(t, "--matrix", "--json")
	var got struct{ Matrix []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	assert.Len(t, got.Matrix, len(lines))
	assert.Equal(t, true, got.Matrix[0]["covered"])
}
