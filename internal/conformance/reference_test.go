package conformance

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/conformance/reference"
	"goatb/internal/refdata"
	"goatb/tensor"
)

// referenced lists the operations that have a float64 reference.
var referenced = []string{
	"Activation", "Concat", "Elewise", "Gather", "IndexAdd", "Linear", "PagedAttention", "ReshapeAndCache", "RmsNorm", "Rope",
	"SelfAttention", "Slice", "Softmax", "Split", "Transpose",
}

// TestReferencesMeetGoldenCases checks the yardstick itself: every reference
// agrees with every golden case, under the case's class and tolerance, which
// must be those that classOf gives.
func TestReferencesMeetGoldenCases(t *testing.T) {
	dir := refdata.Path(t, "golden")
	total := 0
	for _, op := range referenced {
		var files []string
		require.NoError(t, filepath.WalkDir(filepath.Join(dir, op+"Operation"), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".safetensors") {
				files = append(files, path)
			}
			return err
		}))
		require.NotEmpty(t, files, op)
		total += len(files)
		for _, path := range files {
			checkReference(t, path)
		}
	}
	assert.Equal(t, 402, total)
}

func checkReference(t *testing.T, path string) {
	t.Helper()
	g, err := readGolden(path)
	require.NoError(t, err)
	c := &reference.Input{Op: g.row.Op(), Param: []byte(g.row.Field("OpParam")), In: g.in}
	var types []tensor.DType
	for name := range strings.SplitSeq(g.row.Field("OutDTypeChecked"), ";") {
		dt, err := tensor.ParseDType(name)
		require.NoError(t, err)
		types = append(types, dt)
		c.Out = append(c.Out, tensor.Desc{DType: dt, Shape: g.out[len(c.Out)].Desc.Shape})
	}
	out, err := reference.Eval(c)
	require.NoError(t, err, path)
	require.GreaterOrEqual(t, len(out), len(g.out), path)
	class, sum := classOf(c)
	assert.Equal(t, g.row.Field("OpType"), string(class), path)
	for i := range g.out {
		tolerance := class.tolerance(types[i], sum)
		assert.Equal(t, g.tolerance[i], tolerance, "%s output %d", path, i)
		rounded := roundTo(types[i], &out[i])
		d := compare(&rounded, &g.out[i], g.tolerance[i])
		assert.Empty(t, d.why, "%s output %d, largest error %g", path, i, d.worst)
	}
}

// roundTo rounds a float64 result to the type of an output.
func roundTo(dt tensor.DType, x *Tensor) Tensor {
	if x.Desc.DType != tensor.Float64 {
		return *x
	}
	v := x.Floats()
	for i := range v {
		v[i] = reference.Round(dt, v[i])
	}
	return reference.OfFloats(x.Desc, v)
}
