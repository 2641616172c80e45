package kernel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

type size struct{ N int64 }

type plan struct {
	A int32
	B uint8
}

func define(name string, change func(*kernel.Def[size, plan])) *kernel.Kernel {
	d := kernel.Def[size, plan]{
		Name: name,
		Tile: func(_ *kernel.Problem, a size, t *plan, tail []int64) (kernel.Grid, error) {
			t.A = int32(a.N)
			for i := range tail {
				tail[i] = int64(i)
			}
			return kernel.Grid{Key: 3, Blocks: int(a.N)}, nil
		},
		Run: func(*kernel.Args, int, *plan, []int64) error { return nil },
	}
	if change != nil {
		change(&d)
	}
	return kernel.Define(d)
}

func TestDefineRefusesWhatCannotTravelAsBytes(t *testing.T) {
	assert.PanicsWithValue(t, "kernel x: []int cannot travel as bytes", func() {
		kernel.Define(kernel.Def[struct{}, struct{ S []int }]{
			Name: "x",
			Tile: func(*kernel.Problem, struct{}, *struct{ S []int }, []int64) (kernel.Grid, error) {
				return kernel.Grid{}, nil
			},
			Run: func(*kernel.Args, int, *struct{ S []int }, []int64) error { return nil },
		})
	})
	type holder struct{ A [2]struct{ P *int } }
	assert.Panics(t, func() {
		kernel.Define(kernel.Def[holder, plan]{
			Name: "x",
			Tile: func(*kernel.Problem, holder, *plan, []int64) (kernel.Grid, error) { return kernel.Grid{}, nil },
			Run:  func(*kernel.Args, int, *plan, []int64) error { return nil },
		})
	})
	assert.Panics(t, func() { define("x", func(d *kernel.Def[size, plan]) { d.Run = nil }) })
	assert.Panics(t, func() { define("x", func(d *kernel.Def[size, plan]) { d.Tile = nil }) })
	assert.Panics(t, func() {
		define("x", func(d *kernel.Def[size, plan]) {
			d.Share = func(*kernel.Args, int, int, *plan, []int64) error { return nil }
		})
	}, "it has Run too")
}

func TestTile(t *testing.T) {
	k := define("x/y", func(d *kernel.Def[size, plan]) {
		d.Tail = func(_ *kernel.Problem, a size) int { return int(a.N) }
		d.Scratch = func(_ *kernel.Problem, a size) int64 { return 10 * a.N }
	})
	p := &kernel.Problem{Params: size{3}}
	require.NoError(t, k.Supports(p))
	assert.Equal(t, int64(30), k.Scratch(p))
	require.Equal(t, 8+3*8, k.TilingSize(p))
	b := device.BytesOf(make([]uint64, 4))
	for i := range b {
		b[i] = 0xee
	}
	g, err := k.Tile(p, b)
	require.NoError(t, err)
	assert.Equal(t, kernel.Grid{Key: 3, Blocks: 3}, g)
	assert.Equal(t, []int64{3, 0, 1, 2}, device.View[int64](b), "what was there before is gone")
	assert.Nil(t, k.Program().Cost, "an unknown cost")

	_, err = k.Tile(&kernel.Problem{Params: size{0}}, b[:8])
	assert.ErrorIs(t, err, status.ErrInternal)
	assert.ErrorContains(t, err, "0 blocks")
	assert.ErrorIs(t, k.Supports(&kernel.Problem{Params: "text"}), status.ErrInternal)
}

func TestSelect(t *testing.T) {
	small := define("sum/fast", func(d *kernel.Def[size, plan]) {
		d.Supports = func(_ *kernel.Problem, a size) error {
			if a.N > 4 {
				return fmt.Errorf("want at most 4, got %d", a.N)
			}
			return nil
		}
	})
	any := define("sum/plain", nil)
	table := kernel.Table{small, any}
	for _, tt := range []struct {
		name, filter, want string
		n                  int64
		refused            []string
	}{
		{"best first", "", "sum/fast", 4, nil},
		{"reference last", "", "sum/plain", 5, []string{"want at most 4, got 5"}},
		{"filter keeps", "sum/plain", "sum/plain", 4, []string{`left out by the kernel filter "sum/plain"`}},
		{"filter keeps by pattern", "sum/f*", "sum/fast", 4, nil},
		{"filter leaves out", "!sum/fast", "sum/plain", 4, []string{"left out"}},
		{"filter of another family", "dot/fast, !dot/plain", "sum/fast", 4, nil},
		{"filter keeps several", "dot/fast,sum/plain", "sum/plain", 4, []string{"left out"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, err := kernel.ParseFilter(tt.filter)
			require.NoError(t, err)
			k, refused, err := table.Select(&kernel.Problem{Params: size{tt.n}}, f)
			require.NoError(t, err)
			assert.Equal(t, tt.want, k.Name())
			require.Len(t, refused, len(tt.refused))
			for i, why := range tt.refused {
				assert.ErrorContains(t, refused[i].Reason, why)
			}
		})
	}
}

func TestSelectNames(t *testing.T) {
	no := func(text string) func(*kernel.Def[size, plan]) {
		return func(d *kernel.Def[size, plan]) {
			d.Supports = func(*kernel.Problem, size) error { return fmt.Errorf("%s", text) }
		}
	}
	p := &kernel.Problem{Params: size{1}}
	_, _, err := kernel.Table{define("a/x", no("not this")), define("a/y", no("nor that"))}.Select(p, kernel.Filter{})
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "none of 2 kernels takes this; the last, a/y: nor that")
	e, ok := err.(*status.OpError)
	require.True(t, ok)
	assert.Equal(t, "none of 2 kernels takes this; the last, a/y: nor that\n\ta/x: not this\n\ta/y: nor that", fmt.Sprintf("%+v", e.Err))
	_, _, err = kernel.Table{define("a/x", no("not this"))}.Select(p, kernel.Filter{})
	assert.ErrorContains(t, err, "no kernel takes this: a/x: not this")
	_, _, err = kernel.Table{}.Select(p, kernel.Filter{})
	assert.ErrorContains(t, err, "the table is empty")
	_, err = kernel.ParseFilter("a/[")
	assert.ErrorIs(t, err, status.ErrInvalidParam)
}

func TestSameProblem(t *testing.T) {
	d := tensor.Of(tensor.Float32, 2)
	make := func() kernel.Problem {
		return kernel.Problem{In: []tensor.Desc{d}, Out: []tensor.Desc{d}, Val: []tensor.Desc{d}, Params: size{1}, Machine: kernel.Machine{Cores: 1}}
	}
	a, b := make(), make()
	b.Values = [][]int64{{1}}
	assert.True(t, a.Same(&b), "values are looked at elsewhere")
	for i, change := range []func(*kernel.Problem){
		func(p *kernel.Problem) { p.In = nil },
		func(p *kernel.Problem) { p.Out = append(p.Out, d) },
		func(p *kernel.Problem) { p.Val[0].DType = tensor.Int32 },
		func(p *kernel.Problem) { p.Params = size{2} },
		func(p *kernel.Problem) { p.Params = struct{ N int64 }{1} },
		func(p *kernel.Problem) { p.Machine.Cores = 2 },
		func(p *kernel.Problem) { p.Options.ShuffleK = true },
	} {
		b := make()
		change(&b)
		assert.False(t, a.Same(&b), "%d", i)
		assert.False(t, b.Same(&a), "%d", i)
	}
}

func TestBlocksFor(t *testing.T) {
	for _, tt := range []struct {
		cores, items int64
		nanos        float64
		want         int
	}{
		{4, 100, 1e9, 4}, {4, 3, 1e9, 3}, {4, 100, 2.5 * kernel.MinBlockNanos, 2}, {4, 100, 1, 1},
		{0, 100, 1e9, 1}, {4, 0, 1e9, 1}, {16, 1 << 40, 1e300, 16},
	} {
		got := kernel.BlocksFor(kernel.Machine{Cores: int(tt.cores)}, tt.items, tt.nanos)
		assert.Equal(t, tt.want, got, "%+v", tt)
	}
}

func TestStreamBlocks(t *testing.T) {
	const mb = 1 << 20
	for _, tt := range []struct {
		blocks       int
		items, bytes int64
		want         int
	}{
		{1, 100, 100 * mb, 1}, {2, 1000, 100 * mb, 128}, {2, 10, 100 * mb, 10}, {2, 100, mb, 16}, {2, 100, mb / 16, 2}, {64, 1 << 40, math.MaxInt64, 4096},
	} {
		assert.Equal(t, tt.want, kernel.StreamBlocks(kernel.Machine{Cores: tt.blocks}, tt.blocks, tt.items, tt.bytes), "%+v", tt)
		assert.Equal(t, tt.blocks, kernel.StreamBlocks(kernel.Machine{Accelerator: true}, tt.blocks, tt.items, tt.bytes), "an accelerator")
	}
}

// A program of shares computes single blocks as shares of one.
func TestSharesOfOneBlock(t *testing.T) {
	var ran [][2]int
	k := define("x", func(d *kernel.Def[size, plan]) {
		d.Run = nil
		d.Share = func(_ *kernel.Args, lo, hi int, _ *plan, _ []int64) error {
			ran = append(ran, [2]int{lo, hi})
			return nil
		}
	})
	a := kernel.Args{Tiling: device.BytesOf(make([]uint64, 64))}
	require.NoError(t, k.Program().Prepare(&a), "nothing to prepare")
	require.NoError(t, k.Program().Run(&a, 3))
	require.NoError(t, k.Program().Share(&a, 4, 7))
	assert.Equal(t, [][2]int{{3, 4}, {4, 7}}, ran)
	lo, hi := kernel.Shares(10, 1, 3, 4)
	assert.Equal(t, [2]int64{3, 8}, [2]int64{lo, hi})
}

func TestShareCoversEverythingOnce(t *testing.T) {
	for _, n := range []int64{0, 1, 5, 16, 17} {
		for blocks := 1; blocks <= 7; blocks++ {
			next := int64(0)
			for b := range blocks {
				lo, hi := kernel.Share(n, b, blocks)
				assert.Equal(t, next, lo)
				assert.LessOrEqual(t, hi-lo, n/int64(blocks)+1)
				assert.GreaterOrEqual(t, hi-lo, n/int64(blocks))
				next = hi
			}
			assert.Equal(t, n, next)
		}
	}
}

// The layout names everything that a tiling's bytes mean.
func TestLayout(t *testing.T) {
	type inner struct {
		A int8
		B [3]float32
	}
	type tiling struct {
		N uint32
		I inner
	}
	k := kernel.Define(kernel.Def[struct{ On bool }, tiling]{
		Name: "x",
		Tile: func(*kernel.Problem, struct{ On bool }, *tiling, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(*kernel.Args, int, *tiling, []int64) error { return nil },
	})
	assert.Equal(t, "{On@0 bool;}1 {N@0 uint32;I@4 {A@0 int8;B@4 [3]float32;}16;}20", k.Layout())
}
