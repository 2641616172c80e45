package vec

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCopyAround copies between all alignments and lengths around a turn.
func TestCopyAround(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		src := make([]byte, 1000)
		for i := range src {
			src[i] = byte(i*7 + i/256)
		}
		for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 256, 700} {
			for offset := range 70 {
				whole := bytes.Repeat([]byte{0xa5}, n+offset+130)
				CopyAround(whole[offset:][:n], src[offset:][:n])
				require.Equal(t, bytes.Repeat([]byte{0xa5}, offset), whole[:offset])
				require.Equal(t, src[offset:][:n], whole[offset:][:n])
				require.Equal(t, bytes.Repeat([]byte{0xa5}, 130), whole[offset+n:])
			}
		}
	})
}
