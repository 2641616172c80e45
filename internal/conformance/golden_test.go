package conformance

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// goldenFile writes a golden case of a softmax over two equal scores.
func goldenFile(t *testing.T, set map[string]string, out *Tensor) string {
	t.Helper()
	meta := map[string]string{
		"Suite": "softmax", "Row": "4", "CaseNum": "5", "OpName": "SoftmaxOperation", "OpParam": `{"axes":[0]}`, "InFormat": "nd",
		"OutNum": "1", "OutDType": "float", "OutFormat": "nd", "OutShape": "2", "ExpectedError": "NO_ERROR", "Tolerance": "0.001",
	}
	maps.Copy(meta, set)
	in := of(tensor.Float32, 3, 3)
	var b bytes.Buffer
	require.NoError(t, tensor.WriteSafetensors(&b, []tensor.Entry{
		{Name: "in0", Desc: in.Desc, Data: in.Data}, {Name: "out0", Desc: out.Desc, Data: out.Data},
	}, meta))
	path := filepath.Join(t.TempDir(), "case.safetensors")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

func TestGoldenCase(t *testing.T) {
	half, wrong := of(tensor.Float32, 0.5, 0.5005), of(tensor.Float32, 0.5, 0.6)
	for _, c := range []struct {
		name string
		set  map[string]string
		out  *Tensor
		want Status
		why  string
	}{
		{"match", nil, half, Passed, ""},
		{"mismatch", nil, wrong, Failed, "output 0: element 1: want 0.6"},
		{"its own tolerance", map[string]string{"Tolerance": "0.2"}, wrong, Passed, ""},
		{"output shape of the file", map[string]string{"OutShape": "7,7"}, half, Passed, ""},
		{"replaced inputs", map[string]string{"OutNum": "9", "Replaced": "0"}, half, Passed, ""},
		{"several ranks", map[string]string{"RankSize": "2"}, half, Skipped, "several ranks"},
		{"later operation", map[string]string{"OpName": "SortOperation"}, half, Skipped, "comes later"},
		{"no metadata", map[string]string{"OpName": ""}, half, Failed, "no metadata"},
		{"tolerances", map[string]string{"Tolerance": "1,1"}, half, Failed, "2 tolerances for 1 outputs"},
		{"alias", map[string]string{"OutAlias": "0:7"}, half, Failed, "alias"},
		{"row", map[string]string{"Row": "x"}, half, Failed, "row"},
		{"format", map[string]string{"InFormat": "zz"}, half, Failed, "unknown format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := Check([]string{filepath.Dir(goldenFile(t, c.set, c.out))}, Options{Engine: &fake{}, MaxBytes: 1})
			require.NoError(t, err)
			require.Len(t, res.Cases, 1)
			got := res.Cases[0]
			assert.Equal(t, c.want, got.Status, got.Reason)
			assert.Contains(t, got.Reason, c.why)
			if c.want == Passed {
				assert.Equal(t, 4, got.Row)
				assert.Equal(t, "5", got.Case)
				assert.InDelta(t, 0.0005, got.MaxErr, 0.1)
			}
		})
	}
}

func TestGoldenCaseInPlace(t *testing.T) {
	same := of(tensor.Float32, 3, 3)
	res, err := Check([]string{goldenFile(t, map[string]string{"InPlace": "1", "OutNum": "0", "OutDType": "", "OutFormat": "", "OutShape": ""}, same)},
		Options{Engine: &inPlace{}})
	require.NoError(t, err)
	assert.Equal(t, Totals{Passed: 1}, res.Totals, "%+v", res.Cases)
}

// inPlace is an engine whose operation has no outputs and changes nothing.
type inPlace struct{}

func (inPlace) Has(string) bool                                    { return true }
func (inPlace) Create(string, []byte) (Op, error)                  { return inPlace{}, nil }
func (inPlace) InferShape(in []tensor.Desc) ([]tensor.Desc, error) { return nil, nil }
func (inPlace) Setup(in, out []Tensor) error                       { return nil }
func (inPlace) Execute(in, out []Tensor) error                     { return nil }
func (inPlace) Close() error                                       { return nil }
