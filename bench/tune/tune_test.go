package tune

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/bench/roofline"
	"goatb/kernel"
	"goatb/operation"
	"goatb/tensor"
)

// A case of every kind is measured; what is said of it fits together.
func TestMeasure(t *testing.T) {
	cases := []roofline.Case{
		roofline.Packed(tensor.BFloat16, 5, 64, 64), roofline.Plain(tensor.Float32, 70, 40, 600, true), roofline.Plain(tensor.Int8, 33, 40, 600, false),
	}
	i := slices.IndexFunc(Cases(), func(c roofline.Case) bool { return c.Name == "decode" && c.DType == "f16" })
	for _, c := range append(cases, Cases()[i]) {
		r, err := Measure(t.Context(), &c, 2, time.Nanosecond)
		require.NoError(t, err)
		assert.Equal(t, []any{c.Name, c.Shape, c.DType, 2}, []any{r.Name, r.Shape, r.DType, r.Threads})
		assert.Positive(t, r.Ways)
		assert.Positive(t, r.Time)
		assert.Positive(t, r.GFlops)
		assert.Contains(t, r.Chosen, "blocks")
		assert.Equal(t, r.Told == "", r.Best == r.Chosen)
		assert.True(t, r.Ratio > 0 && r.Ratio <= 1, "%v", r.Ratio)
	}
	bad := roofline.Case{Name: "bad", Build: func(*roofline.Bench) error { return errors.New("no such shape") }}
	_, err := Measure(t.Context(), &bad, 1, 0)
	require.ErrorContains(t, err, "no such shape")
}

// The search opens every way once, and the ways differ in what they launch.
func TestWaysDiffer(t *testing.T) {
	c := roofline.Plain(tensor.Float32, 700, 600, 600, false)
	b, err := roofline.Open(&c, 2, 0)
	require.NoError(t, err)
	defer func() { assert.NoError(t, b.Close()) }()
	s := search{threads: 2, budget: time.Nanosecond}
	defer s.close()
	require.NoError(t, s.open(t.Context(), b))
	require.Greater(t, len(s.ways), 2, "one core, and less to pack at a time")
	for i, w := range s.ways {
		assert.Equal(t, i == 0, w.told == "")
		for _, o := range s.ways[:i] {
			assert.False(t, w.same(o), "%s and %s", w, o)
		}
	}
	one := slices.IndexFunc(s.ways, func(w *way) bool { return w.told == "cores x0.5" })
	require.Positive(t, one)
	assert.Equal(t, 1, s.ways[one].launches[0].Grid.Blocks)
}

func TestQuestions(t *testing.T) {
	k := kernel.Define(kernel.Def[struct{}, struct{}]{
		Name: "family/best",
		Tile: func(*kernel.Problem, struct{}, *struct{}, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(*kernel.Args, int, *struct{}, []int64) error { return nil },
	})
	var got []string
	for _, q := range questions(3, []operation.Launched{{Kernel: k}, {Kernel: k}}) {
		got = append(got, q.String())
	}
	assert.Equal(t, []string{
		"cores x0.333", "cores x0.667", "cores x2", "cores x4", "L2 x0.25", "L3 x0.25", "L2 x0.5", "L3 x0.5", "L2 x2", "L3 x2", "L2 x4", "L3 x4", "!family/best",
	}, got)
}
