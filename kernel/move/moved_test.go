package move

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/tensor"
)

// The runs of bytes that kernels say they move are those that they move, and
// they find all that are one run.
func TestMoves(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 80))
	fill := func(d tensor.Desc) []byte {
		b := make([]byte, d.Bytes())
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		return b
	}
	moved := 0
	check := func(k *kernel.Kernel, p *kernel.Problem, in, out [][]byte) {
		for i := range out {
			for j := range in {
				m := k.Moves(p, i, j)
				if m.Bytes == 0 {
					continue
				}
				moved++
				require.Equal(t, in[j][m.InAt:m.InAt+m.Bytes], out[i][m.OutAt:m.OutAt+m.Bytes], "%s: %+v", k.Name(), m)
			}
		}
	}
	for range 60 {
		d := tensor.Of(sizes[rng.IntN(len(sizes))], randomDims(rng, 1+rng.IntN(3), 400)...)
		axis := rng.IntN(d.Rank())
		whole := d
		whole.Shape = d.Shape.With(axis, 3*d.Dim(axis))
		large := d
		large.Shape = d.Shape.With(axis, 2*d.Dim(axis))
		a := Axis{int64(axis)}

		join := problem(a, []tensor.Desc{whole}, d, large)
		in := [][]byte{fill(d), fill(large)}
		check(Join[0], &join, in, run(t, Join, join, in...))

		split := problem(a, []tensor.Desc{large, d}, whole)
		in = [][]byte{fill(whole)}
		check(Split[0], &split, in, run(t, Split, split, in...))

		box := Box{}
		box.From[axis] = d.Dim(axis)
		window := problem(box, []tensor.Desc{d}, whole)
		check(Window[0], &window, in, run(t, Window, window, in...))
		if d.Shape.Product(0, axis) == 1 {
			n := d.Bytes()
			assert.Equal(t, kernel.Moved{OutAt: n, Bytes: 2 * n}, Join[0].Moves(&join, 0, 1))
			assert.Equal(t, kernel.Moved{InAt: 2 * n, Bytes: n}, Split[0].Moves(&split, 1, 0))
			assert.Equal(t, kernel.Moved{InAt: n, Bytes: n}, Window[0].Moves(&window, 0, 0))
		}
	}
	assert.Greater(t, moved, 100)

	bytes := tensor.Of(tensor.Int8, 7)
	assert.Equal(t, kernel.Moved{Bytes: 7}, Copy[0].Moves(&kernel.Problem{In: []tensor.Desc{bytes}, Out: []tensor.Desc{bytes}, Params: struct{}{}}, 0, 0))
}

// Rows that lie where they shall go stay untouched.
func TestCopyRowsOntoThemselves(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	want := append([]byte(nil), b...)
	copyRows(b, 4, b, 4, 2, 3)
	copyRows(b[2:], 8, b[2:], 2, 1, 2)
	copyRows(b, 8, b, 8, 1, 8)
	assert.Equal(t, want, b)
	copyRows(b, 2, b, 4, 2, 2) // rows that only start together move
	assert.Equal(t, []byte{1, 2, 5, 6, 5, 6, 7, 8}, b)
}
