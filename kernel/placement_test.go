package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
)

func TestPlacement(t *testing.T) {
	place := func(s kernel.Placement) func(*kernel.Def[size, plan]) {
		return func(d *kernel.Def[size, plan]) { d.TileOn = s }
	}
	both := kernel.OnHost | kernel.OnAICPU
	assert.Equal(t, kernel.OnHost, define("x", nil).TileOn(), "the host unless the kernel says more")
	assert.Equal(t, both, define("x", place(both)).TileOn())
	assert.Equal(t, kernel.OnAICPU, define("x", place(kernel.OnAICPU)).TileOn())
	assert.PanicsWithValue(t, "kernel x: want tiling placements of TILING_ON_HOST|TILING_ON_AICPU, got TILING_ON_HOST|placement(0x10)", func() {
		define("x", place(kernel.OnHost|16))
	})
	assert.True(t, both.Has(kernel.OnAICPU))
	assert.False(t, kernel.OnHost.Has(both))
	assert.Equal(t, "none", kernel.Placement(0).String())
	assert.Equal(t, "TILING_ON_AICPU", kernel.OnAICPU.String())
}

// A problem whose parameters went through bytes is tiled as the problem itself.
func TestParamsTravelAsBytes(t *testing.T) {
	k := define("x/y", func(d *kernel.Def[size, plan]) {
		d.Tail = func(_ *kernel.Problem, a size) int { return int(a.N) }
		d.Scratch = func(_ *kernel.Problem, a size) int64 { return 10 * a.N }
	})
	mem := device.BytesOf(make([]uint64, 2))
	require.Equal(t, 8, k.ParamSize())
	require.NoError(t, k.EncodeParams(mem[:8], &kernel.Problem{Params: size{3}}))
	var p kernel.Problem
	require.NoError(t, k.ViewParams(&p, mem))
	require.NoError(t, k.Supports(&p))
	assert.Equal(t, int64(30), k.Scratch(&p))
	dst := device.BytesOf(make([]uint64, 4))
	require.Equal(t, 32, k.TilingSize(&p))
	g, err := k.Tile(&p, dst)
	require.NoError(t, err)
	assert.Equal(t, kernel.Grid{Key: 3, Blocks: 3}, g)
	again := make([]byte, 8)
	require.NoError(t, k.EncodeParams(again, &p), "a view travels too")
	assert.Equal(t, mem[:8], again)
	allocs := testing.AllocsPerRun(10, func() { _ = k.ViewParams(&p, mem) })
	assert.Zero(t, allocs)

	assert.ErrorIs(t, k.EncodeParams(mem[:7], &kernel.Problem{Params: size{3}}), status.ErrInternal)
	assert.ErrorContains(t, k.EncodeParams(mem[:8], &kernel.Problem{Params: "text"}), "want params kernel_test.size, got string")
	assert.ErrorContains(t, k.ViewParams(&p, mem[:7]), "want 8 bytes, got 7")
	assert.ErrorContains(t, k.ViewParams(&p, mem[1:]), "aligned to 8")
}

func TestEmptyParamsTravel(t *testing.T) {
	k := kernel.Define(kernel.Def[struct{}, plan]{
		Name: "x",
		Tile: func(*kernel.Problem, struct{}, *plan, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(*kernel.Args, int, *plan, []int64) error { return nil },
	})
	var p kernel.Problem
	require.NoError(t, k.EncodeParams(nil, &kernel.Problem{Params: struct{}{}}))
	require.NoError(t, k.ViewParams(&p, nil))
	assert.NoError(t, k.Supports(&p))
}
