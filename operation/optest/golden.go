package optest

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
	"goatb/operation"
	"goatb/tensor"
)

// CheckGoldens computes every case of the reference data for an operation, such
// as "RopeOperation", under both profiles and compares the outputs by the rules
// of the data: NaN and Inf count as 0, and |actual-golden| is at most the case's
// tolerance times max(1, |golden|).
func CheckGoldens(t *testing.T, op string, decode Decoder) {
	t.Helper()
	files, err := filepath.Glob(refdata.Path(t, "golden", op, "*.safetensors"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".safetensors"), func(t *testing.T) {
			f, err := tensor.OpenSafetensors(path)
			require.NoError(t, err)
			defer f.Close()
			for _, p := range []*operation.Profile{operation.Board910B(), operation.Native()} {
				checkGolden(t, f, p, decode)
			}
		})
	}
}

func checkGolden(t *testing.T, f *tensor.File, p *operation.Profile, decode Decoder) {
	t.Helper()
	r := row(f.Metadata())
	spec, err := decode(r.param())
	require.NoError(t, err)
	c := Case{Spec: spec, Profile: p}
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
	c.Out, err = operation.InferShape(spec, p, c.In)
	require.NoError(t, err)
	got := Run(t, c)
	for i, text := range strings.Split(r["Tolerance"], ",") {
		tolerance, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		want := f.Entry("out" + strconv.Itoa(i))
		require.Equal(t, want.Desc.Shape, c.Out[i].Shape, "output %d", i)
		golden, actual := float64s(t, want.Data, want.Desc.DType), float64s(t, got.Out[i], c.Out[i].DType)
		for j, g := range golden {
			require.LessOrEqual(t, math.Abs(actual[j]-g), tolerance*max(1, math.Abs(g)), "profile %s, output %d element %d: got %v, want %v", p.Name(), i, j, actual[j], g)
		}
	}
}

// float64s reads a tensor with 0 for what is not finite.
func float64s(t *testing.T, b []byte, d tensor.DType) []float64 {
	t.Helper()
	v, err := tensor.Float64s(b, d)
	require.NoError(t, err)
	for i, x := range v {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			v[i] = 0
		}
	}
	return v
}
