package gemm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
	"goatb/tensor"
)

// TestAcross compares every element of random steps, for all 2-byte elements.
func TestAcross(t *testing.T) {
	across := BestAcross(cpu.Detected())
	if across.Words == nil {
		t.Skip("this processor has no such loops")
	}
	half := func(elem tensor.DType) func(row []byte) []byte {
		return func(row []byte) []byte { return widened(elem, 1, row) }
	}
	same := func(row []byte) []byte { return row }
	r := rand.New(rand.NewPCG(19, 20))
	for _, c := range []struct {
		name       string
		pack       Pack
		rows, size int
		become     func(row []byte) []byte
	}{
		{"words", across.Words, 1, 4, same}, {"pairs", across.Pairs, 2, 2, same}, {"quads", across.Quads, 4, 1, same},
		{"f16", across.F16, 1, 2, half(tensor.Float16)}, {"bf16", across.BF16, 1, 2, half(tensor.BFloat16)},
	} {
		for range 200 {
			steps, stride := 1+r.IntN(40), 32*c.size+r.IntN(300)
			src, dst := newGuarded(r, (c.rows*steps-1)*stride+32*c.size), newGuarded(r, 128*steps)
			for i := range src.payload {
				src.payload[i] = byte(r.Uint32())
			}
			c.pack(steps, &dst.payload[0], &src.payload[0], stride)
			for s := range steps {
				step := dst.payload[128*s:][:128]
				for i := range c.rows {
					row := c.become(src.payload[(s*c.rows+i)*stride:][:32*c.size])
					size := len(row) / 32
					for column := range 32 {
						want, got := row[column*size:][:size], step[(column*c.rows+i)*size:][:size]
						if size == 4 && isNaN(want) && isNaN(got) {
							continue
						}
						require.Equal(t, want, got, "%s: step %d row %d column %d", c.name, s, i, column)
					}
				}
			}
			dst.check(t)
		}
	}
}

// isNaN reports whether four bytes are a NaN.
func isNaN(word []byte) bool {
	f := math.Float32frombits(binary.LittleEndian.Uint32(word))
	return f != f
}
