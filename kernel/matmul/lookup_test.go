package matmul

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// Rows that are picked from int4 weights are the weights times their scales, rounded
// once, whatever the groups are.
func TestInt4Lookup(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for i, s := range [][3]int64{{1, 8, 8}, {33, 64, 32}, {70, 1032, 24}, {31, 1088, 64}, {65, 520, 8}, {40, 2048, 1024}, {5, 96, 96}} {
		for _, scale := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			for _, out := range floats {
				t.Run(fmt.Sprintf("n=%d/k=%d/group=%d/scale=%s/out=%s", s[0], s[1], s[2], scale, out), func(t *testing.T) {
					n, k := s[0], s[1]
					d := newInt4Data(t, tensor.Float32, scale, tensor.Undefined, 1, n, k, s[2], uint64(i))
					p := kernel.Problem{In: make([]tensor.Desc, Inputs), Out: []tensor.Desc{tensor.Of(out, 7, k)}, Params: Int4Params{n}}
					p.In[X], p.In[W] = tensor.Of(tensor.Int32, 7), d.desc
					rows, want := make([]int32, 7), []float64(nil)
					for j := range rows {
						rows[j] = r.Int32N(int32(n))
						want = append(want, d.ws[int64(rows[j])*k:][:k]...)
					}
					in := make([][]byte, Inputs)
					in[X], in[W] = device.BytesOf(rows), d.packed
					got := decode(out, kerneltest.Run(t, kerneltest.Case{Kernel: lookupGo, Problem: p, In: in})[0])
					require.Equal(t, decode(out, encode(out, want)), got)
				})
			}
		}
	}
}
