package kernelgraph_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernelgraph"
)

// firstOnly works in place on its first input; it reads the second more than
// once.
var firstOnly = kernel.Table{kernel.Define(kernel.Def[none, none]{
	Name: "test/first-only", InPlace: true, Pairs: [][2]int{{0, 0}},
	Tile: func(*kernel.Problem, none, *none, []int64) (kernel.Grid, error) { return kernel.Grid{Blocks: 1}, nil },
	Run:  func(*kernel.Args, int, *none, []int64) error { return nil },
})}

// A kernel says for each pair of output and input whether they may share
// memory: an output over another input takes a detour.
func TestPairsOfInPlaceKernels(t *testing.T) {
	for at, detour := range []bool{false, true} {
		b := newBuilder([]int64{8, 8}, []int64{8})
		in := refs{b.In(0), b.In(1)}
		tmp := b.Temp("t", bytes(8))
		call(t, b, plain, refs{b.In(0)}, refs{tmp})
		in[at] = tmp
		call(t, b, firstOnly, in, refs{tmp})
		require.NoError(t, b.Copy(tmp, b.Out(0)))
		nodes := text(build(t, b))
		if detour {
			assert.Equal(t, []string{"test/first-only[in0 t]->[detour]", "copy/bytes[detour]->[t]"}, nodes[1:3])
		} else {
			assert.Equal(t, "test/first-only[t in1]->[t]", nodes[1])
		}
	}
}

// A caller may bind an output to the input for which the kernel allows it, and
// to no other.
func TestSharingAsksForThePair(t *testing.T) {
	b := newBuilder([]int64{8, 8}, []int64{8})
	call(t, b, firstOnly, refs{b.In(0), b.In(1)}, refs{b.Out(0)})
	s := kernelgraph.NewSharing(build(t, b))
	assert.True(t, s.Allowed(b.In(0), b.Out(0)))
	assert.False(t, s.Allowed(b.In(1), b.Out(0)))
}
