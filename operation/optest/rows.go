package optest

import (
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
	"goatb/internal/rowkeys"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Decoder reads an operation's parameters from JSON.
type Decoder func(param []byte) (operation.Spec, error)

// row is a row of the reference data, by column name.
type row map[string]string

// readRows reads a suite: lines of columns separated by bars, under a header,
// blanks removed.
func readRows(t testing.TB, path string) []row {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r := csv.NewReader(strings.NewReader(strings.ReplaceAll(string(text), " ", "")))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '|', true, -1
	lines, err := r.ReadAll()
	require.NoError(t, err)
	var rows []row
	for _, l := range lines[1:] {
		x := row{}
		for i, name := range lines[0] {
			if i < len(l) {
				x[name] = l[i]
			}
		}
		rows = append(rows, x)
	}
	return rows
}

// onBoard reports whether the row is valid on the Ascend 910B.
func (r row) onBoard() bool {
	return r["SocVersion"] == "" || slices.Contains(strings.Split(r["SocVersion"], ","), "Ascend910B")
}

// descs reads the descriptors of the columns of a side, "In" or "Out".
func (r row) descs(t testing.TB, side string) []tensor.Desc {
	t.Helper()
	n, err := strconv.Atoi(r[side+"Num"])
	require.NoError(t, err)
	types, formats, shapes := strings.Split(r[side+"DType"], ";"), strings.Split(r[side+"Format"], ";"), strings.Split(r[side+"Shape"], ";")
	descs := make([]tensor.Desc, n)
	for i := range descs {
		var dims []int64
		for _, f := range strings.Split(shapes[i], ",") {
			d, err := strconv.ParseInt(f, 10, 64)
			require.NoError(t, err)
			dims = append(dims, d)
		}
		if slices.Contains(dims, 0) {
			dims = nil // an empty tensor arrives with rank 0
		}
		typ, err := tensor.ParseDType(types[i])
		require.NoError(t, err)
		descs[i] = tensor.Of(typ, dims...)
		descs[i].Format, err = tensor.ParseFormat(formats[i])
		require.NoError(t, err)
	}
	return descs
}

// param returns the row's parameters without the keys that are none.
func (r row) param() []byte {
	op, _, _ := strings.Cut(r["OpName"], "_")
	return rowkeys.Drop(op, []byte(r["OpParam"]))
}

// outcome runs the stages create, infer shape and setup under profile 910b and
// returns what a row expects: "I:ERROR_INVALID_PARAM", or "NO_ERROR".
func (r row) outcome(t testing.TB, decode Decoder) string {
	spec, err := decode(r.param())
	if err != nil {
		return "C:" + status.CodeOf(err).String()
	}
	if r["InNum"] == "" {
		return "no error at create, and no operands"
	}
	in := r.descs(t, "In")
	out, err := operation.InferShape(spec, operation.Board910B(), in)
	if err != nil {
		return "I:" + status.CodeOf(err).String()
	}
	if r["TestType"] != "Generalization" {
		out = r.descs(t, "Out")
	}
	if err := operation.CheckSetup(spec, operation.Board910B(), in, out, nil); err != nil {
		return "S:" + status.CodeOf(err).String()
	}
	return status.OK.String()
}

// CheckRows checks the outcome of every row of a suite, such as "rope", that
// holds on the Ascend 910B and is not listed as stale: which stage of create,
// infer shape and setup fails with which code. It wants at least `least` rows
// and does not compute. leftOut lists more rows, by CaseNum, whose text is not
// what their generator ran.
func CheckRows(t *testing.T, suite string, decode Decoder, least int, leftOut ...string) {
	t.Helper()
	stale := map[string]bool{}
	for _, c := range leftOut {
		stale[c] = true
	}
	text, err := os.ReadFile(refdata.Path(t, "atb-csv", "stale.tsv"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); f[0] == suite {
			stale[f[1]] = true
		}
	}
	n := 0
	for _, r := range readRows(t, refdata.Path(t, "atb-csv", suite+".csv")) {
		if !r.onBoard() || stale[r["CaseNum"]] {
			continue
		}
		n++
		if got := r.outcome(t, decode); got != strings.Replace(r["ExpectedError"], "S:NO_ERROR", "NO_ERROR", 1) {
			t.Errorf("%s case %s: want %s, got %s: %v", suite, r["CaseNum"], r["ExpectedError"], got, r)
		}
	}
	require.GreaterOrEqual(t, n, least, "rows of %s", suite)
}
