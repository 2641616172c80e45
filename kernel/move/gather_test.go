package move

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// indexBytes encodes indices.
func indexBytes(t tensor.DType, v []int64) []byte {
	var b []byte
	for _, x := range v {
		switch t {
		case tensor.Int64:
			b = append(b, device.BytesOf([]int64{x})...)
		default:
			b = append(b, device.BytesOf([]int32{int32(x)})...)
		}
	}
	return b
}

// gatherShape gives the output's dims.
func gatherShape(x, idx []int64, axis, batch int) []int64 {
	out := append([]int64{}, x[:axis]...)
	out = append(out, idx[batch:]...)
	return append(out, x[axis+1:]...)
}

var gatherCases = []struct {
	x, idx      []int64
	axis, batch int64
}{
	{[]int64{10}, []int64{25}, 0, 0},
	{[]int64{10, 6}, []int64{4}, 0, 0},
	{[]int64{3, 7, 2}, []int64{2, 5}, 1, 0},
	{[]int64{3, 7, 2}, []int64{3, 5}, 1, 1},
	{[]int64{2, 3, 4, 5}, []int64{2, 6}, 3, 1},
	{[]int64{2, 3, 4, 5}, []int64{2, 3, 3}, 2, 2},
	{[]int64{2, 3, 4}, []int64{2, 3}, 2, 2},
	{[]int64{1, 2, 3, 4, 5, 2, 1, 2}, []int64{1, 2, 3, 4, 5, 2, 1, 3}, 7, 7},
	{[]int64{5, 40000}, []int64{3}, 0, 0},
	{[]int64{1000, 33}, []int64{200}, 0, 0},
}

func TestGather(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for i, c := range gatherCases {
		for _, dt := range sizes {
			index := []tensor.DType{tensor.Int32, tensor.Uint32, tensor.Int64}[i%3]
			t.Run(fmt.Sprint(dt, index, c), func(t *testing.T) {
				x, idx := tensor.Of(dt, c.x...), tensor.Of(index, c.idx...)
				out := tensor.Of(dt, gatherShape(c.x, c.idx, int(c.axis), int(c.batch))...)
				data := randomBytes(uint64(i), x.Bytes())
				picks := make([]int64, idx.Numel())
				for k := range picks {
					picks[k] = rng.Int64N(c.x[c.axis])
				}
				got := run(t, Gather, problem(Pick{Axis: c.axis, BatchDims: c.batch}, []tensor.Desc{out}, x, idx), data, indexBytes(index, picks))[0]
				from := make([]int64, len(c.x))
				extra := len(c.idx) - int(c.batch)
				positions(out.Shape, func(pos []int64) {
					k := int64(0)
					for j, d := range c.idx {
						p := pos[j]
						if j >= int(c.batch) {
							p = pos[int(c.axis)+j-int(c.batch)]
						}
						k = k*d + p
					}
					copy(from, pos[:c.axis])
					from[c.axis] = picks[k]
					copy(from[c.axis+1:], pos[int(c.axis)+extra:])
					if string(at(&x, data, from)) != string(at(&out, got, pos)) {
						require.FailNow(t, "wrong element", "at %v", pos)
					}
				})
			})
		}
	}
}

// runGather runs one launch of Gather on float16 rows and returns its output.
func runGather(t *testing.T, rows, width int64, index tensor.DType, picks []int64, zero bool) ([]byte, error) {
	t.Helper()
	n := int64(len(picks))
	x, idx, out := tensor.Of(tensor.Float16, rows, width), tensor.Of(index, n), tensor.Of(tensor.Float16, n, width)
	p := problem(Pick{ZeroOutside: zero}, []tensor.Desc{out}, x, idx)
	p.Machine = kernel.Machine{Cores: 1}
	require.NoError(t, gatherRows.Supports(&p))
	tiling := make([]byte, gatherRows.TilingSize(&p))
	g, err := gatherRows.Tile(&p, tiling)
	require.NoError(t, err)
	dst := make([]byte, out.Bytes())
	for i := range dst {
		dst[i] = 0xee
	}
	data := make([]byte, x.Bytes())
	for i := range data {
		data[i] = 1
	}
	a := kernel.Args{Tiling: tiling, Key: g.Key, Blocks: 1, Buffers: []device.Buffer{
		device.Wrap(data), device.Wrap(indexBytes(index, picks)), device.Wrap(dst),
	}}
	return dst, gatherRows.Program().Run(&a, 0)
}

func TestGatherReportsBadIndices(t *testing.T) {
	for _, c := range []struct {
		index tensor.DType
		bad   int64
		text  string
	}{
		{tensor.Int32, 5, "index 5 at position 2 is outside 0 to 3"},
		{tensor.Int32, -1, "index -1 at position 2 is outside 0 to 3"},
		{tensor.Int64, 1 << 40, "index 1099511627776 at position 2"},
		{tensor.Uint32, -1, "index 4294967295 at position 2"},
	} {
		for _, width := range []int64{1, 3} {
			picks := []int64{0, 3, c.bad, 1}
			dst, err := runGather(t, 4, width, c.index, picks, false)
			require.ErrorIs(t, err, status.ErrRuntimeFail)
			assert.ErrorContains(t, err, c.text)
			assert.ErrorContains(t, err, "input 1")
			assert.Equal(t, byte(0xee), dst[len(dst)-1], "nothing is written after the bad index")

			dst, err = runGather(t, 4, width, c.index, picks, true)
			require.NoError(t, err)
			want := make([]byte, 4*2*width)
			for i := range want {
				if i/int(2*width) != 2 {
					want[i] = 1
				}
			}
			assert.Equal(t, want, dst)
		}
	}
}

func TestGatherRefuses(t *testing.T) {
	f := func(dims ...int64) tensor.Desc { return tensor.Of(tensor.Float16, dims...) }
	i := func(dims ...int64) tensor.Desc { return tensor.Of(tensor.Int32, dims...) }
	for _, c := range []struct {
		x, idx, out tensor.Desc
		p           Pick
	}{
		{f(4, 3), f(2), f(2, 3), Pick{}},
		{f(4, 3), i(2), f(2, 4), Pick{}},
		{f(4, 3), i(2), tensor.Of(tensor.Float32, 2, 3), Pick{}},
		{f(4, 3), i(2), f(2, 3), Pick{Axis: 2}},
		{f(4, 3), i(2), f(2, 3), Pick{Axis: 1, BatchDims: 2}},
		{f(4, 3), i(5, 2), f(4, 2), Pick{Axis: 1, BatchDims: 1}},
		{f(4, 3), i(4), f(4), Pick{Axis: 1, BatchDims: -1}},
	} {
		p := problem(c.p, []tensor.Desc{c.out}, c.x, c.idx)
		assert.Error(t, gatherRows.Supports(&p), "%v", c)
	}
}

func TestRunsDoNotAllocate(t *testing.T) {
	f := func(dims ...int64) tensor.Desc { return tensor.Of(tensor.Float16, dims...) }
	for _, c := range []struct {
		k *kernel.Kernel
		p kernel.Problem
	}{
		{copyBytes, problem(struct{}{}, []tensor.Desc{f(64, 64)}, f(64, 64))},
		{transposeTiles, problem(Perm{[8]int8{1, 0}}, []tensor.Desc{f(64, 32)}, f(32, 64))},
		{transposeRows, problem(Perm{[8]int8{1, 0, 2}}, []tensor.Desc{f(8, 4, 16)}, f(4, 8, 16))},
		{joinRows, problem(Axis{1}, []tensor.Desc{f(8, 12)}, f(8, 4), f(8, 8))},
		{splitRows, problem(Axis{1}, []tensor.Desc{f(8, 4), f(8, 8)}, f(8, 12))},
		{windowRows, problem(Box{[8]int64{1, 2}}, []tensor.Desc{f(4, 4)}, f(8, 8))},
		{gatherRows, problem(Pick{}, []tensor.Desc{f(4, 8)}, f(16, 8), tensor.Of(tensor.Int32, 4))},
	} {
		c.p.Machine = kernel.Machine{Cores: 1}
		require.NoError(t, c.k.Supports(&c.p), c.k.Name())
		a := kernel.Args{Tiling: make([]byte, c.k.TilingSize(&c.p)), Blocks: 1}
		var g kernel.Grid
		for _, d := range append(append([]tensor.Desc{}, c.p.In...), c.p.Out...) {
			a.Buffers = append(a.Buffers, device.Wrap(make([]byte, d.Bytes())))
		}
		allocs := testing.AllocsPerRun(10, func() {
			g, _ = c.k.Tile(&c.p, a.Tiling)
			a.Key = g.Key
			if err := c.k.Program().Run(&a, 0); err != nil {
				t.Error(err)
			}
		})
		assert.Zero(t, allocs, c.k.Name())
	}
}
