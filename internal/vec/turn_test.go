package vec

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTurn compares with the definition for sizes around the squares, with gaps
// between rows.
func TestTurn(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(31, 32))
		for _, size := range []int{1, 2, 4, 8} {
			edge := 64 / size
			for _, rows := range []int{1, 3, edge - 1, edge, edge + 5, 2 * edge, 3*edge + 1} {
				for _, cols := range []int{1, 7, edge, 2*edge + 3} {
					checkTurn(t, r, size, rows, cols)
				}
			}
		}
	})
}

func checkTurn(t *testing.T, r *rand.Rand, size, rows, cols int) {
	const canary = 0xa5
	srcStride, dstStride := (rows+r.IntN(3))*size, (cols+r.IntN(3))*size
	src, dst := make([]byte, cols*srcStride), make([]byte, rows*dstStride+64)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	for i := range dst {
		dst[i] = canary
	}
	Turn(size, dst[32:32+rows*dstStride], src, dstStride, srcStride, rows, cols)
	for i, got := range dst {
		at, want := i-32, byte(canary)
		if row, col, b := at/dstStride, at%dstStride/size, at%size; at >= 0 && row < rows && col < cols {
			want = src[col*srcStride+row*size+b]
		}
		require.Equal(t, want, got, "size %d, %d x %d: byte %d", size, rows, cols, at)
	}
}
