package conformance

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/conformance/reference"
	"goatb/internal/refdata"
	"goatb/tensor"
)

// TestSecondCallSeesItsOwnOperands runs every golden case twice after one Setup:
// first on other data, then on the case's, which lie at other addresses. What
// the first call left behind must not show.
func TestSecondCallSeesItsOwnOperands(t *testing.T) {
	e := runtime(t)
	n := 0
	require.NoError(t, filepath.WalkDir(refdata.Path(t, "golden"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".safetensors") {
			return err
		}
		g, err := readGolden(path)
		require.NoError(t, err)
		if !g.ranks && e.Has(g.row.Op()) {
			secondCall(t, e, g, path)
			n++
		}
		return nil
	}))
	assert.Positive(t, n)
}

func secondCall(t *testing.T, e *Runtime, g *golden, path string) {
	t.Helper()
	o, err := e.Create(g.row.Op(), g.row.params())
	require.NoError(t, err, path)
	defer func() { require.NoError(t, o.Close()) }()
	var descs []tensor.Desc
	for _, x := range g.in {
		descs = append(descs, x.Desc)
	}
	outDescs, err := o.InferShape(descs)
	require.NoError(t, err, path)
	outputs := func(in []Tensor) []Tensor {
		out := make([]Tensor, len(outDescs))
		for i, d := range outDescs {
			if out[i] = reference.Zeros(d); g.alias != nil {
				if src, ok := g.alias[i]; ok {
					out[i].Data = in[src].Data
				}
			}
		}
		return out
	}
	require.NoError(t, o.Setup(g.in, outputs(g.in)), path)

	other := make([]Tensor, len(g.in))
	for i, x := range g.in {
		other[i] = Tensor{Desc: x.Desc, Data: slices.Clone(x.Data)}
		if x.Desc.DType.IsFloat() {
			clear(other[i].Data)
		}
	}
	require.NoError(t, o.Execute(other, outputs(other)), path)
	out := outputs(g.in)
	require.NoError(t, o.Execute(g.in, out), path)
	for i := range g.out {
		d := compare(&out[i], &g.out[i], g.tolerance[i])
		assert.Empty(t, d.why, "%s output %d", path, i)
	}
}

// TestPlansAreKeptApart runs pairs of calls that a key made of element counts
// or a weak hash would take for one another, in both orders, on one context.
func TestPlansAreKeptApart(t *testing.T) {
	e := runtime(t)
	softmax := func(axis string, dims ...int64) pairCall {
		return pairCall{"SoftmaxOperation", `{"axes":[` + axis + `]}`, []tensor.Desc{tensor.Of(tensor.Float32, dims...)}}
	}
	split := func(num string) pairCall {
		return pairCall{"SplitOperation", `{"splitDim":1,"splitNum":` + num + `}`, []tensor.Desc{tensor.Of(tensor.Float16, 4, 6)}}
	}
	transpose := func(perm string, dims ...int64) pairCall {
		return pairCall{"TransposeOperation", `{"perm":[` + perm + `]}`, []tensor.Desc{tensor.Of(tensor.Float16, dims...)}}
	}
	for _, pair := range [][2]pairCall{
		{softmax("0", 3, 17, 1, 1), softmax("0", 1, 152, 1, 1)},
		{softmax("0", 4, 1, 2, 2), softmax("0", 1, 4, 2, 2)},
		{softmax("0", 4, 6), softmax("1", 4, 6)},
		{split("2"), split("3")},
		{transpose("1,0,2", 2, 3, 4), transpose("0,2,1", 2, 3, 4)},
		{transpose("1,0,2", 2, 3, 4), transpose("1,0,2", 3, 2, 4)},
	} {
		for _, order := range [][]int{{0, 1, 0, 1}, {1, 0, 0, 1}} {
			for _, i := range order {
				pair[i].run(t, e)
			}
		}
	}
}

// pairCall is a call on data that count up.
type pairCall struct {
	op, param string
	in        []tensor.Desc
}

func (p *pairCall) run(t *testing.T, e *Runtime) {
	t.Helper()
	in := make([]Tensor, len(p.in))
	for i, d := range p.in {
		in[i] = reference.Zeros(d)
		n := float32(0)
		constantly := floats(func(*rand.Rand) float32 { n++; return n / 8 })
		constantly(nil, &in[i])
	}
	o, err := e.Create(p.op, []byte(p.param))
	require.NoError(t, err)
	defer func() { require.NoError(t, o.Close()) }()
	descs, err := o.InferShape(p.in)
	require.NoError(t, err)
	out := make([]Tensor, len(descs))
	for i, d := range descs {
		out[i] = reference.Zeros(d)
	}
	require.NoError(t, o.Setup(in, out))
	require.NoError(t, o.Execute(in, out))
	want, err := reference.Eval(&reference.Input{Op: p.op, Param: []byte(p.param), In: in, Out: descs})
	require.NoError(t, err)
	for i := range want {
		d := compare(&out[i], &want[i], 0x1p-11)
		assert.Empty(t, d.why, "%s %s %v output %d", p.op, p.param, p.in, i)
	}
}
