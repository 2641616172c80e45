package gemm

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// transposes lists the loops of all levels.
func transposes() map[string]Transpose {
	out := map[string]Transpose{"go": BestTranspose(cpu.None)}
	for _, s := range usable() {
		out[s.Name] = s.Transpose
	}
	return out
}

func TestTranspose(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for level, turn := range transposes() {
		for range 500 {
			rows, words := 1+r.IntN(int(turn.Width)), 1+r.IntN(70)
			srcStride := 4*words + r.IntN(9)
			stride := 4 * (rows + r.IntN(20))
			flip := r.Uint32()
			src := newGuarded(r, (rows-1)*srcStride+4*words)
			dst := newGuarded(r, (words-1)*stride+4*int(turn.Width))
			for i := range src.payload {
				src.payload[i] = byte(r.Uint32())
			}
			turn.Turn(words, &dst.payload[0], stride, &src.payload[0], srcStride, rows, flip)
			for s := range words {
				for k := range rows {
					want := binary.LittleEndian.Uint32(src.payload[k*srcStride+4*s:]) ^ flip
					require.Equal(t, want, binary.LittleEndian.Uint32(dst.payload[s*stride+4*k:]), "%s: rows %d words %d at %d,%d", level, rows, words, k, s)
				}
			}
			dst.check(t)
		}
	}
}

// BenchmarkTranspose reports words per nanosecond in the caches.
func BenchmarkTranspose(b *testing.B) {
	for level, turn := range transposes() {
		b.Run(fmt.Sprintf("level=%s", level), func(b *testing.B) {
			const words = 256
			width := int(turn.Width)
			src, dst := make([]byte, 4*words*width), make([]byte, 4*words*width)
			for b.Loop() {
				turn.Turn(words, &dst[0], 4*width, &src[0], 4*words, width, 0)
			}
			b.ReportMetric(float64(words*width)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "words/ns")
		})
	}
}
