package gemm

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDequant(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, s := range usable() {
		if s.Dequant == nil {
			continue
		}
		for n := 1; n < 80; n++ {
			sums, less := make([]int32, n), make([]int32, n)
			scale, dst := make([]float32, n), make([]float32, n+2)
			for i := range n {
				sums[i], less[i], scale[i] = int32(r.Uint32()), int32(r.Uint32()), float32(r.NormFloat64())
			}
			dst[n], dst[n+1] = 7, 8
			factor := float32(r.NormFloat64())
			s.Dequant(n, &dst[0], &sums[0], &less[0], &scale[0], factor)
			for i := range n {
				want := float32(sums[i]-less[i]) * scale[i]
				require.Equal(t, want*factor, dst[i], "%s: %d of %d", s.Name, i, n)
			}
			require.Equal(t, []float32{7, 8}, dst[n:])
		}
	}
}
