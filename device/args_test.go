package device

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Bytes that were looked up are those of the buffers, and stay so.
func TestLookUp(t *testing.T) {
	x := Wrap([]byte{1, 2, 3, 4})
	a := Args{Buffers: []Buffer{x.At(1, 2), {}, x}}
	want := [][]byte{{2, 3}, nil, {1, 2, 3, 4}}
	for range 2 {
		for i := range want {
			require.Equal(t, want[i], a.Mem(i))
		}
		room := make([][]byte, 5)
		a.LookUp(room)
		require.Nil(t, room[3], "no more than the operands'")
	}
	require.Same(t, &x.Bytes()[1], &a.Mem(0)[0], "the memory itself")
}
