package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
	"goatb/tensor"
)

// columns is one of the column orders of suites.
var columns = []string{
	"CaseNum", "CaseName", "OpName", "OpParam", "InNum", "InDType", "InFormat", "InShape", "OutNum", "OutDType", "OutFormat",
	"OutShape", "DataGenType", "DataGenRange", "InTensorFile", "OutTensorFile", "TestType", "TestLevel", "FromModel", "SocVersion", "ExpectedError",
}

// line makes a line of a suite from columns; the others are those of a softmax
// that succeeds.
func line(set map[string]string) string {
	values := map[string]string{
		"CaseNum": "1", "CaseName": "softmax", "OpName": "SoftmaxOperation", "OpParam": `{"axes":[0]}`,
		"InNum": "1", "InDType": "float", "InFormat": "nd", "InShape": "2,3", "OutNum": "1", "OutDType": "float", "OutFormat": "nd", "OutShape": "2,3",
		"DataGenType": "random", "DataGenRange": "-1,1", "ExpectedError": "NO_ERROR",
	}
	for k, v := range set {
		values[k] = v
	}
	var f []string
	for _, c := range columns {
		f = append(f, values[c])
	}
	return strings.Join(f, "|")
}

// suite joins a header and lines.
func suite(lines ...string) string {
	return strings.Join(append([]string{strings.Join(columns, "|")}, lines...), "\n")
}

func TestParseSuite(t *testing.T) {
	rows := parseSuite("s", "\ufeff\n"+strings.ReplaceAll(suite(
		line(map[string]string{"OpName": " SoftmaxOperation_0_1 ", "OpParam": `{"axes": [0, 1]}`}),
		"",
		"   ",
		line(map[string]string{"OpParam": `"{""axes"":[1]}"`, "CaseName": `a "quoted" name`}),
	), "\n", "\r\n"))
	require.Len(t, rows, 2)
	for i := range rows {
		assert.Empty(t, rows[i].Dirty)
		assert.Equal(t, i, rows[i].Index)
		assert.Equal(t, "SoftmaxOperation", rows[i].Op())
	}
	assert.Equal(t, `{"axes":[0,1]}`, rows[0].Field("OpParam"))
	assert.Equal(t, `{"axes":[1]}`, rows[1].Field("OpParam"))
	assert.Equal(t, `a"quoted"name`, rows[1].Field("CaseName"))
}

func TestParseSuiteFindsColumnsByName(t *testing.T) {
	rows := parseSuite("s", "ExpectedError|OpParam|OpName|CaseNum\nC:ERROR_INVALID_PARAM|{}|XOperation|7")
	require.Len(t, rows, 1)
	assert.Equal(t, "7", rows[0].Field("CaseNum"))
	assert.Equal(t, "C:ERROR_INVALID_PARAM", rows[0].Field("ExpectedError"))
	assert.Empty(t, rows[0].Field("InNum"))
}

func TestParseSuiteReportsDirtyRows(t *testing.T) {
	good := line(nil)
	for _, c := range []struct{ text, why string }{
		{good + "|x", "22 columns, the header has 21"},
		{strings.TrimSuffix(good, "|NO_ERROR"), "20 columns"},
		{good + good, "41 columns"},
		{line(map[string]string{"ExpectedError": ""}), "no expected outcome"},
		{line(map[string]string{"ExpectedError": "X:NO_ERROR"}), "unknown stage"},
		{line(map[string]string{"ExpectedError": "C:ERROR_NEW"}), "unknown outcome"},
		{line(map[string]string{"ExpectedError": "ERROR_INVALID_PARAM"}), "unknown outcome"},
		{line(map[string]string{"OpName": ""}), "no operation name"},
		{`"never closed|` + good, "columns"},
	} {
		rows := parseSuite("s", suite(c.text, good))
		require.Len(t, rows, 2, "%s", c.why)
		assert.Contains(t, rows[0].Dirty, c.why)
		assert.Empty(t, rows[1].Dirty)
	}
}

func TestParseSuiteLeavesOtherTablesAlone(t *testing.T) {
	assert.Empty(t, parseSuite("s", "CaseNum|CaseName|BaseLine(us)|TotalTime_RC3(us)\n1|a|2|3"))
	assert.Empty(t, parseSuite("s", ""))
}

func TestParseExpectation(t *testing.T) {
	for text, want := range map[string]expectation{
		"NO_ERROR":                   {"NO_ERROR", "", status.OK},
		"S:NO_ERROR":                 {"S:NO_ERROR", "S", status.OK},
		"I:ERROR_INVALID_TENSOR_DIM": {"I:ERROR_INVALID_TENSOR_DIM", "I", status.ErrInvalidTensorDim},
	} {
		got, err := parseExpectation(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		assert.Equal(t, text == "NO_ERROR", got.succeeds())
	}
}

// rowOf parses a line.
func rowOf(t *testing.T, set map[string]string) *Row {
	t.Helper()
	rows := parseSuite("s", suite(line(set)))
	require.Len(t, rows, 1)
	require.Empty(t, rows[0].Dirty)
	return &rows[0]
}

func TestOperands(t *testing.T) {
	ten := tensor.ShapeOf(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
	for _, c := range []struct {
		num, types, formats, shapes string
		want                        []tensor.Desc
	}{
		{"0", "", "", "", []tensor.Desc{}},
		{"2", "float16;bf16", "nd;fractal_nz", "2,3;4,5;", []tensor.Desc{tensor.Of(tensor.Float16, 2, 3), {DType: tensor.BFloat16, Format: tensor.FractalNZ, Shape: tensor.ShapeOf(4, 5)}}},
		{"1", "float32", "nchw", "7", []tensor.Desc{tensor.Of(tensor.Float32, 7)}},
		{"1", "int32", "nhwc", "7", []tensor.Desc{{DType: tensor.Int32, Format: tensor.NHWC, Shape: tensor.ShapeOf(7)}}},
		{"2", "int8;int8", "nd;nd", "0;20,0", []tensor.Desc{{DType: tensor.Int8}, {DType: tensor.Int8}}},
		{"1", "int8", "nd", "1,1,1,1,1,1,1,1,1,1", []tensor.Desc{{DType: tensor.Int8, Shape: ten}}},
	} {
		r := rowOf(t, map[string]string{"InNum": c.num, "InDType": c.types, "InFormat": c.formats, "InShape": c.shapes})
		got, err := r.operands("In")
		require.NoError(t, err, c.shapes)
		assert.Equal(t, c.want, got)
	}
}

func TestOperandsRefuse(t *testing.T) {
	for _, set := range []map[string]string{
		{"InNum": "x"}, {"InNum": "-1"}, {"InNum": "2"}, {"InDType": "float4"}, {"InFormat": "zz"}, {"InShape": "2,x"}, {"InShape": ""},
	} {
		_, err := rowOf(t, set).operands("In")
		assert.Error(t, err, "%v", set)
	}
}

func TestFills(t *testing.T) {
	got, err := rowOf(t, map[string]string{"DataGenType": "one;zero;random", "DataGenRange": "0,1;;-0.5,2"}).fills(4)
	require.NoError(t, err)
	assert.Equal(t, []fill{{fillOne, 0, 1}, {fillZero, -5, 5}, {fillRandom, -0.5, 2}, {"", -5, 5}}, got)
	got, err = rowOf(t, map[string]string{"DataGenType": "", "DataGenRange": ""}).fills(1)
	require.NoError(t, err)
	assert.Equal(t, []fill{{fillCustom, -5, 5}}, got)
	_, err = rowOf(t, map[string]string{"DataGenRange": "1"}).fills(1)
	assert.Error(t, err)
}

func TestReadStale(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stale.tsv")
	require.NoError(t, os.WriteFile(path, []byte("suite\tcase\treason\nlinear\t35\tgenerator replaces\n\n"), 0o644))
	s, err := ReadStale(path)
	require.NoError(t, err)
	numbered := func(numbers ...string) (rows []Row) {
		for i, n := range numbers {
			rows = append(rows, Row{Suite: "linear", Index: i, fields: map[string]string{"CaseNum": n}})
		}
		return rows
	}
	assert.Equal(t, map[int]string{1: "generator replaces"}, s.of(numbered("3", "35", "36")))
	assert.Equal(t, map[int]string{2: "generator replaces"}, s.of(numbered("35", "3", "35")), "the last of several")
	assert.Empty(t, s.of(numbered("3")))
	assert.Empty(t, Stale(nil).of(numbered("35")))
	require.NoError(t, os.WriteFile(path, []byte("suite\tcase\treason\nlinear 35\n"), 0o644))
	_, err = ReadStale(path)
	assert.ErrorContains(t, err, "stale.tsv:2")
	_, err = ReadStale(path + "x")
	assert.ErrorIs(t, err, os.ErrNotExist)
}
