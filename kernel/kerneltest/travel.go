package kerneltest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/kernel"
)

// tileFromBytes computes the tiling from parameters that went through bytes, as
// a device does, and wants the tiling that the problem itself gives. A kernel
// that places its tiling on the device is tiled with zeros too.
func tileFromBytes(t testing.TB, k *kernel.Kernel, p *kernel.Problem, want []byte, grid kernel.Grid) {
	t.Helper()
	params := newGuarded(int64(k.ParamSize()), 0)
	poison(params.payload, 0x55)
	require.NoError(t, k.EncodeParams(params.payload, p), k.Name())
	q := *p
	q.Params = nil
	require.NoError(t, k.ViewParams(&q, params.payload), k.Name())
	require.Equal(t, len(want), k.TilingSize(&q), "%s: tiling size", k.Name())
	got := newGuarded(int64(len(want)), 1)
	poison(got.payload, 0xaa)
	g, err := k.Tile(&q, got.payload)
	require.NoError(t, err, k.Name())
	require.Equal(t, grid, g, "%s: tiling depends on more than the bytes of its parameters", k.Name())
	require.True(t, bytes.Equal(want, got.payload), "%s: tiling depends on more than the bytes of its parameters", k.Name())
	if !k.TileOn().Has(kernel.OnAICPU) {
		return
	}
	q.Values = make([][]int64, len(p.Values))
	for i := range q.Values {
		q.Values[i] = make([]int64, len(p.Values[i]))
	}
	_, err = k.Tile(&q, got.payload)
	require.NoError(t, err, "%s: a kernel that is tiled on the device takes values of zero", k.Name())
}
