package kernel

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
)

func TestGapsOf(t *testing.T) {
	type inner struct {
		A int32
		B bool
	}
	type outer struct {
		X bool
		Y int64
		Z [2]inner
		W uint16
	}
	assert.Equal(t, []gap{{1, 8}, {21, 24}, {29, 32}, {34, 40}}, gapsOf(reflect.TypeFor[outer](), 0))
	assert.Empty(t, gapsOf(reflect.TypeFor[[3]int64](), 0))
	assert.Empty(t, gapsOf(reflect.TypeFor[struct{}](), 0))
}

// Bytes that no field holds are zeros, in tilings and in parameters, whatever the
// memory held before.
func TestGapsAreZeros(t *testing.T) {
	type plain struct {
		Flag bool
		N    int64
		Last int32
	}
	k := Define(Def[plain, plain]{
		Name: "test/gaps",
		Tile: func(_ *Problem, a plain, t *plain, _ []int64) (Grid, error) {
			t.Flag, t.N, t.Last = a.Flag, a.N, a.Last
			return Grid{Blocks: 1}, nil
		},
		Run: func(*device.Args, int, *plain, []int64) error { return nil },
	})
	p := Problem{Params: plain{Flag: true, N: 7, Last: 3}}
	want := make([]byte, 24)
	want[0], want[8], want[16] = 1, 7, 3
	bytes := func() []byte {
		b := device.BytesOf(make([]uint64, 3))
		for i := range b {
			b[i] = 0xee
		}
		return b
	}
	tiling := bytes()
	_, err := k.Tile(&p, tiling)
	require.NoError(t, err)
	assert.Equal(t, want, tiling)
	params := bytes()
	require.NoError(t, k.EncodeParams(params, &p))
	assert.Equal(t, want, params)
}
