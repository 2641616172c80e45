package attention

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/refdata"
	"goatb/internal/rowkeys"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/tensor"
)

// floatsOf widens the elements of a float tensor.
func floatsOf(b []byte, t tensor.DType) []float64 {
	var out []float64
	switch t {
	case tensor.Float16:
		for _, v := range device.View[tensor.F16](b) {
			out = append(out, float64(v.Float32()))
		}
	case tensor.BFloat16:
		for _, v := range device.View[tensor.BF16](b) {
			out = append(out, float64(v.Float32()))
		}
	default:
		for _, v := range device.View[float32](b) {
			out = append(out, float64(v))
		}
	}
	return out
}

func TestSelfAttentionGolden(t *testing.T) {
	files, err := filepath.Glob(refdata.Path(t, "golden", "SelfAttentionOperation", "*.safetensors"))
	require.NoError(t, err)
	require.Len(t, files, 7)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, err := tensor.OpenSafetensors(path)
			require.NoError(t, err)
			defer func() { require.NoError(t, f.Close()) }()
			checkGolden(t, f)
		})
	}
}

// checkGolden runs a golden case under both profiles.
func checkGolden(t *testing.T, f *tensor.File) {
	meta := f.Metadata()
	spec, err := operation.Decode(rowkeys.Drop("SelfAttentionOperation", []byte(meta["OpParam"])), DefaultSelfAttention())
	require.NoError(t, err)
	c := optest.Case{Spec: spec}
	for i := range len(spec.Signature().In) {
		e := f.Entry("in" + strconv.Itoa(i))
		require.NotNil(t, e)
		c.In = append(c.In, e.Desc)
		c.Data = append(c.Data, e.AlignedData())
	}
	c.Data = hostLengths(t, meta, spec.(SelfAttention), c.Data)
	tolerance, err := strconv.ParseFloat(strings.Split(meta["Tolerance"], ",")[0], 64)
	require.NoError(t, err)
	golden := f.Entry("out0")
	want := floatsOf(golden.AlignedData(), golden.Desc.DType)
	for _, p := range []*operation.Profile{operation.Native(), operation.Board910B()} {
		c.Profile = p
		got := floatsOf(optest.Run(t, c).Out[0], c.In[0].DType)
		require.Len(t, got, len(want))
		for i := range want {
			if d := math.Abs(got[i] - want[i]); d > tolerance*math.Max(1, math.Abs(want[i])) {
				require.Failf(t, "golden differs", "profile %s, element %d: want %v, got %v", p.Name(), i, want[i], got[i])
			}
		}
	}
}

// hostLengths checks that the host values of the row repeat the tensors.
func hostLengths(t *testing.T, meta map[string]string, p SelfAttention, data [][]byte) [][]byte {
	var calls [][]any
	require.NoError(t, json.Unmarshal([]byte(meta["HostCalls"]), &calls))
	text := calls[0][1].([]any)[0].(string)
	var values struct{ TokenOffset, SeqLen []int32 }
	require.NoError(t, json.Unmarshal([]byte(text), &values))
	s := p.ports()
	assert.Equal(t, values.SeqLen, device.View[int32](data[s.seqLen]))
	if s.offset != absent {
		assert.Equal(t, values.TokenOffset, device.View[int32](data[s.offset]))
	}
	return data
}
