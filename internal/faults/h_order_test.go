package faults_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/atb"
	"goatb/operation/shape"
	"goatb/tensor"
)

// H15: a sort gave the same position twice for elements that are equal.
func TestH15(t *testing.T) {
	for _, dtype := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		c := newBed(t).ready(shape.Sort{Num: []int64{4}}, floats(dtype, repeat(1, 4), 4))
		assert.Equal(t, repeat(1, 4), c.again(), "%s", dtype)
		assert.Equal(t, []float64{0, 1, 2, 3}, c.out(1), "%s", dtype)

		// Long rows of few values, all kept and some, each against its own row.
		const n = 3000
		rng := random(15)
		v := make([]float64, 3*n)
		for i := range v {
			v[i] = float64(rng.IntN(3))
		}
		for _, num := range []int64{5, 700, n} {
			c := newBed(t).ready(shape.Sort{Num: []int64{num}}, floats(dtype, v, 3, n))
			values, positions := rowsOf(c.again(), num), rowsOf(c.out(1), num)
			for r, row := range rowsOf(v, n) {
				want := make([]float64, 0, n)
				for _, value := range []float64{2, 1, 0} {
					for i, x := range row {
						if x == value {
							want = append(want, float64(i))
						}
					}
				}
				assert.True(t, slices.Equal(want[:num], positions[r]), "%s, %d of row %d", dtype, num, r)
				for i, p := range positions[r] {
					assert.Equal(t, row[int(p)], values[r][i])
				}
			}
		}
	}
}
