package linear

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/status"
	"goatb/tensor"
)

// shared returns the folder of specifications and reference data beside the
// module, or skips the test.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		require.NotEqual(t, dir, filepath.Dir(dir), "no go.mod above the package")
	}
	dir = filepath.Join(filepath.Dir(dir), "shared")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("reference data is absent: %v", err)
	}
	return dir
}

// row is a test row, by column name.
type row map[string]string

// readRows reads a row file.
func readRows(t *testing.T, path string) []row {
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

// descs reads the descriptors of columns with a prefix, "In" or "Out".
func (r row) descs(t *testing.T, prefix string) []tensor.Desc {
	t.Helper()
	n, err := strconv.Atoi(r[prefix+"Num"])
	require.NoError(t, err)
	types, formats, shapes := strings.Split(r[prefix+"DType"], ";"), strings.Split(r[prefix+"Format"], ";"), strings.Split(r[prefix+"Shape"], ";")
	descs := make([]tensor.Desc, n)
	for i := range descs {
		var dims []int64
		for _, f := range strings.Split(shapes[i], ",") {
			d, err := strconv.ParseInt(f, 10, 64)
			require.NoError(t, err)
			dims = append(dims, d)
		}
		if slices.Contains(dims, 0) {
			dims = nil // the row runner hands over empty tensors with rank 0
		}
		typ, err := tensor.ParseDType(types[i])
		require.NoError(t, err)
		descs[i] = tensor.Of(typ, dims...)
		descs[i].Format, err = tensor.ParseFormat(formats[i])
		require.NoError(t, err)
	}
	return descs
}

// outcome runs the stages create, infer and setup and returns what the row
// runner would report, "NO_ERROR" when they pass.
func (r row) outcome(t *testing.T) string {
	spec, err := operation.Decode([]byte(r["OpParam"]), DefaultLinear())
	if err != nil {
		return "C:" + status.CodeOf(err).String()
	}
	if r["InNum"] == "" {
		return "no error at create, and no operands"
	}
	in := r.descs(t, "In")
	inferred, err := operation.InferShape(spec, operation.Board910B(), in)
	if err != nil {
		return "I:" + status.CodeOf(err).String()
	}
	out := r.descs(t, "Out")
	if err := operation.CheckSetup(spec, operation.Board910B(), in, out, nil); err != nil {
		return "S:" + status.CodeOf(err).String()
	}
	require.Equal(t, out, inferred, "case %s", r["CaseNum"])
	return status.OK.String()
}

func TestRows(t *testing.T) {
	dir := filepath.Join(shared(t), "atb-csv")
	stale := map[string]bool{}
	text, err := os.ReadFile(filepath.Join(dir, "stale.tsv"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(line, "\t"); f[0] == "linear" {
			stale[f[1]] = true
		}
	}
	n := 0
	for _, r := range readRows(t, filepath.Join(dir, "linear.csv")) {
		if r.onBoard() && !stale[r["CaseNum"]] {
			n++
			require.Equal(t, r["ExpectedError"], r.outcome(t), "case %s: %v", r["CaseNum"], r)
		}
	}
	require.Greater(t, n, 390)
}

func TestGoldens(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(shared(t), "golden", "LinearOperation", "*.safetensors"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".safetensors"), func(t *testing.T) {
			f, err := tensor.OpenSafetensors(path)
			require.NoError(t, err)
			defer f.Close()
			runGolden(t, f)
		})
	}
}

// runGolden runs a case of the reference data on both profiles.
func runGolden(t *testing.T, f *tensor.File) {
	r := row(f.Metadata())
	spec, err := operation.Decode([]byte(r["OpParam"]), DefaultLinear())
	require.NoError(t, err)
	c := optest.Case{Spec: spec, Profile: operation.Board910B()}
	formats := strings.Split(r["InFormat"], ";")
	for i := 0; ; i++ {
		e := f.Entry("in" + strconv.Itoa(i))
		if e == nil {
			break
		}
		d := e.Desc
		d.Format, err = tensor.ParseFormat(formats[i])
		require.NoError(t, err)
		c.In, c.Data = append(c.In, d), append(c.Data, e.AlignedData())
	}
	if r["OutAlias"] != "" {
		require.Equal(t, "0:2", r["OutAlias"])
		c.InPlace = map[int]int{0: 2}
	}
	tolerance, err := strconv.ParseFloat(r["Tolerance"], 64)
	require.NoError(t, err)
	outs, err := operation.InferShape(spec, c.Profile, c.In)
	require.NoError(t, err)
	want := f.Entry("out0")
	require.Equal(t, want.Desc.Shape, outs[0].Shape)
	golden := values(want.Desc.DType, want.AlignedData())
	got := values(outs[0].DType, optest.Run(t, c).Out[0])
	for i, g := range golden {
		g, a := finite(g), finite(got[i])
		require.LessOrEqual(t, math.Abs(a-g), tolerance*max(1, math.Abs(g)), "element %d: want %v, got %v", i, g, a)
	}
}

func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}

// values reads a tensor as float64.
func values(t tensor.DType, b []byte) []float64 {
	v := make([]float64, int64(len(b))/t.Size())
	for i := range v {
		switch t {
		case tensor.Float16:
			v[i] = float64(device.View[tensor.F16](b)[i].Float32())
		case tensor.BFloat16:
			v[i] = float64(device.View[tensor.BF16](b)[i].Float32())
		case tensor.Int8:
			v[i] = float64(device.View[int8](b)[i])
		case tensor.Int32:
			v[i] = float64(device.View[int32](b)[i])
		case tensor.Float64:
			v[i] = device.View[float64](b)[i]
		default:
			v[i] = float64(device.View[float32](b)[i])
		}
	}
	return v
}
