package conformance

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/conformance/reference"
	"goatb/status"
	"goatb/tensor"
)

// fake is an engine whose only operation does a softmax by the reference, or
// fails at a stage.
type fake struct {
	// errs holds what a stage returns.
	errs map[string]error
	// change spoils the result.
	change func(out []Tensor)
	// setup sees the tensors of Setup.
	setup func(in, out []Tensor)
	// closed counts closed operations.
	closed int
}

func (f *fake) Has(name string) bool { return name == "SoftmaxOperation" }

func (f *fake) Create(name string, param []byte) (Op, error) {
	return &fakeOp{f, param}, f.errs[stageCreate]
}

type fakeOp struct {
	*fake
	param []byte
}

func (o *fakeOp) InferShape(in []tensor.Desc) ([]tensor.Desc, error) {
	return in, o.errs[stageInfer]
}

func (o *fakeOp) Setup(in, out []Tensor) error {
	if o.setup != nil {
		o.setup(in, out)
	}
	return o.errs[stageSetup]
}

func (o *fakeOp) Execute(in, out []Tensor) error {
	want, err := reference.Eval(&reference.Input{Op: "SoftmaxOperation", Param: o.param, In: in})
	if err != nil {
		return err
	}
	y := of(tensor.Float32, narrowed(want[0].Floats())...)
	copy(out[0].Data, y.Data)
	if o.change != nil {
		o.change(out)
	}
	return o.errs[stageExecute]
}

func narrowed(v []float64) []float32 {
	f := make([]float32, len(v))
	for i, x := range v {
		f[i] = float32(x)
	}
	return f
}

func (o *fakeOp) Close() error {
	o.closed++
	return o.errs["close"]
}

// checkText runs one suite file.
func checkText(t *testing.T, o Options, lines ...string) *Results {
	t.Helper()
	path := filepath.Join(t.TempDir(), "softmax.csv")
	require.NoError(t, os.WriteFile(path, []byte(suite(lines...)), 0o644))
	res, err := Check([]string{path}, o)
	require.NoError(t, err)
	return res
}

func TestStages(t *testing.T) {
	dim := status.Errorf(status.ErrInvalidTensorDim, "want more")
	for _, c := range []struct {
		name, expected string
		errs           map[string]error
		change         func([]Tensor)
		status         Status
		stage, got     string
	}{
		{"success", "NO_ERROR", nil, nil, Passed, "compare", "NO_ERROR"},
		{"wrong result", "NO_ERROR", nil, func(out []Tensor) { clear(out[0].Data) }, Failed, "compare", "NO_ERROR"},
		{"error instead of success", "NO_ERROR", map[string]error{"S": dim}, nil, Failed, "S", "S:ERROR_INVALID_TENSOR_DIM"},
		{"create", "C:ERROR_INVALID_TENSOR_DIM", map[string]error{"C": dim}, nil, Passed, "C", "C:ERROR_INVALID_TENSOR_DIM"},
		{"infer", "I:ERROR_INVALID_TENSOR_DIM", map[string]error{"I": dim}, nil, Passed, "I", "I:ERROR_INVALID_TENSOR_DIM"},
		{"setup", "S:ERROR_INVALID_TENSOR_DIM", map[string]error{"S": dim}, nil, Passed, "S", "S:ERROR_INVALID_TENSOR_DIM"},
		{"execute", "E:ERROR_INVALID_TENSOR_DIM", map[string]error{"E": dim}, nil, Passed, "E", "E:ERROR_INVALID_TENSOR_DIM"},
		{"earlier", "S:ERROR_INVALID_TENSOR_DIM", map[string]error{"I": dim}, nil, Failed, "I", "I:ERROR_INVALID_TENSOR_DIM"},
		{"later", "I:ERROR_INVALID_TENSOR_DIM", map[string]error{"S": dim}, nil, Failed, "I", "I:NO_ERROR"},
		{"other code", "I:ERROR_INVALID_PARAM", map[string]error{"I": dim}, nil, Failed, "I", "I:ERROR_INVALID_TENSOR_DIM"},
		{"second code", "I:ERROR_INVALID_PARAM", map[string]error{"I": status.Errorf(status.ErrInvalidTensorDim, "x").Or(status.ErrInvalidParam)}, nil, Passed, "I", "I:ERROR_INVALID_PARAM"},
		{"no code", "I:ERROR_INTERNAL_ERROR", map[string]error{"I": errors.New("plain")}, nil, Failed, "I", "I:ERROR_INTERNAL_ERROR"},
		{"no error where one is due", "S:ERROR_INVALID_PARAM", nil, nil, Failed, "S", "S:NO_ERROR"},
		{"stops after infer", "I:NO_ERROR", map[string]error{"S": dim}, nil, Passed, "I", "I:NO_ERROR"},
		{"stops after execute", "E:NO_ERROR", nil, func(out []Tensor) { clear(out[0].Data) }, Passed, "E", "E:NO_ERROR"},
		{"close", "NO_ERROR", map[string]error{"close": dim}, nil, Failed, "compare", "NO_ERROR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{errs: c.errs, change: c.change}
			res := checkText(t, Options{Engine: f}, line(map[string]string{"ExpectedError": c.expected}))
			require.Len(t, res.Cases, 1)
			got := res.Cases[0]
			assert.Equal(t, c.status, got.Status, got.Reason)
			assert.Equal(t, c.stage, got.Stage)
			assert.Equal(t, c.got, got.Got)
			assert.Equal(t, c.expected, got.Expected)
			assert.Equal(t, c.status == Failed, got.Reason != "", got.Reason)
			if c.errs[stageCreate] == nil {
				assert.Equal(t, 1, f.closed)
			}
		})
	}
}

func TestSkips(t *testing.T) {
	res := checkText(t, Options{Engine: &fake{}, Stale: Stale{{"softmax", "3"}: "old"}},
		line(map[string]string{"SocVersion": "Ascend310P,Ascend950"}),
		line(map[string]string{"OpName": "NextOperation_1"}),
		line(map[string]string{"CaseNum": "3"}),
		line(map[string]string{"InDType": "hifloat8"}),
		line(nil)+"|",
		line(map[string]string{"SocVersion": "Ascend310P,Ascend910B"}),
	)
	require.Len(t, res.Cases, 6)
	for i, why := range []string{
		"for other boards (Ascend310P,Ascend950), not Ascend910B", "NextOperation is not in the catalog yet: the operation comes later",
		"stale row: old", `not a row: In tensor 0: unknown dtype "hifloat8"`, "not a row: 22 columns",
	} {
		assert.Equal(t, Skipped, res.Cases[i].Status)
		assert.Contains(t, res.Cases[i].Reason, why)
	}
	assert.Equal(t, Passed, res.Cases[5].Status)
	assert.Equal(t, Totals{Passed: 1, Skipped: 5}, res.Totals)
	assert.Equal(t, []OpTotals{{"NextOperation", Totals{Skipped: 1}}, {"SoftmaxOperation", Totals{Passed: 1, Skipped: 4}}}, res.Ops)
}

func TestLargeRowsStopAfterSetup(t *testing.T) {
	f := &fake{change: func([]Tensor) { t.Error("executed") }}
	big := line(map[string]string{"InShape": "100,100", "OutShape": "100,100"})
	res := checkText(t, Options{Engine: f, MaxBytes: 79999}, big)
	assert.Equal(t, Totals{StageOnly: 1}, res.Totals)
	assert.Equal(t, "S", res.Cases[0].Stage)
	f.change = nil
	res = checkText(t, Options{Engine: f, MaxBytes: 80000}, big)
	assert.Equal(t, Totals{Passed: 1}, res.Totals)
	f.errs = map[string]error{"S": status.ErrInvalidParam}
	res = checkText(t, Options{Engine: f, MaxBytes: 79999}, big)
	assert.Equal(t, Totals{Failed: 1}, res.Totals)
}

func TestGeneralizationTakesInferredOutputs(t *testing.T) {
	res := checkText(t, Options{Engine: &fake{}}, line(map[string]string{
		"TestType": generalization, "OutNum": "reserved", "OutDType": "reserved", "OutFormat": "reserved", "OutShape": "reserved",
	}))
	assert.Equal(t, Totals{Passed: 1}, res.Totals, "%+v", res.Cases)
}

func TestSetupSeesIndexDataOnly(t *testing.T) {
	f := &fake{errs: map[string]error{"S": status.ErrInvalidParam}}
	f.setup = func(in, out []Tensor) {
		assert.Nil(t, in[0].Data)
		require.Len(t, in[1].Data, 16)
		assert.Equal(t, []int64{7, 7}, in[1].Ints())
		assert.Nil(t, in[2].Data)
		assert.Nil(t, out[0].Data)
		assert.Equal(t, tensor.Of(tensor.Float32, 2, 3), out[0].Desc)
	}
	res := checkText(t, Options{Engine: f}, line(map[string]string{
		"InNum": "3", "InDType": "float;int64;int64", "InFormat": "nd;nd;nd", "InShape": "2,3;2;1000000",
		"DataGenType": "random;random;random", "DataGenRange": "0,1;7,7;0,1", "ExpectedError": "S:ERROR_INVALID_PARAM",
	}))
	assert.Equal(t, Totals{Passed: 1}, res.Totals)
}

func TestFilters(t *testing.T) {
	lines := []string{line(map[string]string{"CaseName": "alpha"}), line(map[string]string{"OpName": "OtherOperation", "CaseNum": "22"})}
	for _, c := range []struct {
		ops  []string
		name string
		want []string
	}{
		{nil, "", []string{"SoftmaxOperation", "OtherOperation"}},
		{[]string{"softmax"}, "", []string{"SoftmaxOperation"}},
		{[]string{"softmax", "OtherOperation"}, "", []string{"SoftmaxOperation", "OtherOperation"}},
		{nil, "alph", []string{"SoftmaxOperation"}},
		{nil, "22", []string{"OtherOperation"}},
		{[]string{"other"}, "22", []string{"OtherOperation"}},
	} {
		var each []string
		res := checkText(t, Options{Engine: &fake{}, Ops: c.ops, Case: c.name, Each: func(r CaseResult) { each = append(each, r.Op) }}, lines...)
		assert.Equal(t, c.want, each, "%+v", c)
		assert.Len(t, res.Cases, len(c.want))
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	other := write("index.tsv", "x")
	write("b/one.csv", suite(line(nil), line(nil)))
	write("a/base.csv", "CaseNum|CaseName\n1|x")
	broken := write("c/broken.safetensors", "not a file")
	res, err := Check([]string{dir}, Options{Engine: &fake{}})
	require.NoError(t, err)
	assert.Equal(t, Totals{Passed: 2, Failed: 1}, res.Totals)
	assert.Equal(t, broken, res.Cases[2].Path)
	assert.NotEmpty(t, res.Cases[2].Reason)

	_, err = Check([]string{other}, Options{Engine: &fake{}})
	assert.ErrorContains(t, err, "neither .csv nor .safetensors")
	_, err = Check([]string{filepath.Join(dir, "none")}, Options{Engine: &fake{}})
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = Check(nil, Options{Engine: &fake{}})
	assert.Error(t, err)
	_, err = Check([]string{dir}, Options{})
	assert.Error(t, err)
}

func TestResultsAsJSON(t *testing.T) {
	b, err := json.Marshal(checkText(t, Options{Engine: &fake{}}, line(nil)))
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(b, &got))
	assert.Equal(t, map[string]any{"passed": 1.0, "failed": 0.0, "skipped": 0.0, "stage_only": 0.0}, got["totals"])
	op := got["ops"].([]any)[0].(map[string]any)
	assert.Equal(t, map[string]any{"op": "SoftmaxOperation", "passed": 1.0, "failed": 0.0, "skipped": 0.0, "stage_only": 0.0}, op)
	c := got["cases"].([]any)[0].(map[string]any)
	for _, key := range []string{"path", "row", "case", "op", "status", "stage", "expected", "got", "reason", "max_err", "tolerance"} {
		assert.Contains(t, c, key)
	}
	assert.Equal(t, 0x1p-11, c["tolerance"])
}
