package move

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// randomBytes gives n bytes, the same for the same seed.
func randomBytes(seed uint64, n int64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestCopy(t *testing.T) {
	for i, d := range []tensor.Desc{
		tensor.Of(tensor.Int8, 1), tensor.Of(tensor.Bool, 63), tensor.Of(tensor.Float16, 64, 3),
		tensor.Of(tensor.Float32, 1, 17, 5), tensor.Of(tensor.Int64, 4099), tensor.Of(tensor.Complex128, 3000, 7),
		tensor.Of(tensor.Int8, 1<<20+1),
	} {
		in := randomBytes(uint64(i), d.Bytes())
		p := kernel.Problem{In: []tensor.Desc{d}, Out: []tensor.Desc{d.WithShape(d.Numel())}, Params: struct{}{}}
		for _, k := range Copy {
			out := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: [][]byte{in}})
			assert.Equal(t, in, out[0], "%s", d)
			same := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: [][]byte{in}, InPlace: map[int]int{0: 0}})
			assert.Equal(t, in, same[0], "%s in place", d)
		}
	}
}

func TestCopyStaysOnOneBlockWhenSmall(t *testing.T) {
	blocks := func(n int64) int {
		d := []tensor.Desc{tensor.Of(tensor.Int8, n)}
		p := kernel.Problem{In: d, Out: d, Params: struct{}{}, Machine: kernel.Machine{Cores: 8}}
		g, err := copyBytes.Tile(&p, make([]byte, copyBytes.TilingSize(&p)))
		require.NoError(t, err)
		return g.Blocks
	}
	assert.Equal(t, 1, blocks(4096))
	assert.Equal(t, 8, blocks(1<<22))
}

func TestCopyRefusesOtherSizes(t *testing.T) {
	p := kernel.Problem{In: []tensor.Desc{tensor.Of(tensor.Int8, 4)}, Out: []tensor.Desc{tensor.Of(tensor.Float16, 4)}, Params: struct{}{}}
	assert.ErrorContains(t, copyBytes.Supports(&p), "same size")
}
