package faults_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
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

// H25: updates of one row raced with each other.
func TestH25(t *testing.T) {
	for _, dtype := range []atb.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		add := shape.IndexAdd{IndexType: shape.IndexAddAll}
		one := floats(dtype, []float64{1}, 1)
		// The rows of ones: short, and so long that four workers share the launch.
		for _, width := range []int64{3, 20000} {
			in := []operand{floats(dtype, repeat(0, 2*width), 2, width), ints([]int32{0, 1, 0}), floats(dtype, repeat(1, 3*width), 3, width), one}
			c := bedOn(t, newDevice(t, cpu.WithWorkers(4))).ready(add, in...)
			c.again()
			want := floats(dtype, append(repeat(2, width), repeat(1, width)...), 2, width)
			for range 1000 {
				c.refill(in)
				c.execute(c.op, c.pack, c.ws)
				c.sync()
				require.True(t, bytes.Equal(want.data, c.pack.Out[0].Data.Bytes()), "%s of %d", dtype, width)
			}
		}
		// Sums that depend on their order have the same bits for every number of
		// workers, in place and elsewhere.
		rng := random(25)
		v := floats(dtype, normals(rng, 60*300), 60, 300)
		in := []operand{v, below(rng, 60, 900), floats(dtype, normals(rng, 900*300), 900, 300), one}
		first := cold(t, add, in...)
		for _, workers := range []int{1, 3, 4, 16} {
			b := bedOn(t, newDevice(t, cpu.WithWorkers(workers)))
			c := b.ready(add, in...)
			c.again()
			assert.True(t, bytes.Equal(first[0], c.pack.Out[0].Data.Bytes()), "%s, %d workers", dtype, workers)
			c.pack.Out[0] = c.pack.In[0]
			c.execute(c.op, c.pack, b.setup(c.op, c.pack))
			c.sync()
			assert.True(t, bytes.Equal(first[0], c.pack.In[0].Data.Bytes()), "%s, %d workers in place", dtype, workers)
		}
	}
}
