package attention

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
	"goatb/tensor"
)

// fewWorkers are enough where a test is about instruction sets: others go through
// more.
var fewWorkers = []int{1, 3}

// eachLevel runs a test in plain Go and with every assembly of this machine.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			test(t)
		})
	}
}

// TestLevels compares few rows and many, whose tiles are packed, with float64.
func TestLevels(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for n := range cases(18) {
			r := rand.New(rand.NewPCG(n, 1))
			size := []int64{1, 7, 8, 33, 64, 100}[r.IntN(6)]
			rows, keys := []int64{1, 1 + r.Int64N(60), 0}, []int64{1 + r.Int64N(200), 0, 0}
			keys[1] = rows[1] + r.Int64N(300)
			c := newCall(n, floatTypes[n%3], 4, []int64{1, 2, 4}[r.IntN(3)], size, 1+r.Int64N(70), rows, keys)
			c.a.Causal = r.IntN(2) == 0
			if r.IntN(3) == 0 {
				c.a.Window, c.a.Causal = 1+r.Int64N(150), true
			}
			c.workers = fewWorkers
			c.build(sources[2+r.IntN(3)].layout)
			c.check(t, c.run(t))
		}
	})
}

// TestPackedRowsKeepTheirBits computes rows with tiles of many rows and with few.
func TestPackedRowsKeepTheirBits(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, dtype := range floatTypes {
			c := newCall(7, dtype, 6, 2, 72, 40, []int64{2, 1}, []int64{300, 131})
			c.a.Causal, c.workers = true, fewWorkers
			c.build(sources[2].layout)
			base := c.run(t)
			for i := range c.rows {
				beside := c.with(i, sources[2], 40, 0, 3)
				require.Equal(t, c.bits(base, i), beside.bits(beside.run(t), 0), "%s: sequence %d", dtype, i)
			}
		}
	})
}

// FuzzAttend compares drawn calls with float64 at the levels of this machine.
func FuzzAttend(f *testing.F) {
	f.Add(uint64(1), uint8(64), uint8(40), uint8(20), uint8(90), true)
	f.Add(uint64(2), uint8(3), uint8(200), uint8(1), uint8(255), false)
	f.Add(uint64(3), uint8(72), uint8(33), uint8(70), uint8(0), true)
	f.Fuzz(func(t *testing.T, seed uint64, keySize, valueSize, rows, more uint8, causal bool) {
		levels := cpu.Levels(cpu.Detected())
		defer cpu.Limit(levels[seed%uint64(len(levels))])()
		c := newCall(seed, floatTypes[seed%3], 4, []int64{1, 2, 4}[seed/3%3], int64(keySize)+1, int64(valueSize)+1,
			[]int64{int64(rows)}, []int64{int64(rows) + int64(more)})
		c.a.Causal, c.workers = causal, fewWorkers
		c.build(sources[2].layout)
		c.check(t, c.run(t))
	})
}

// TestUnseenValuesDoNotMatter has NaN in the last key and value, which only the
// last query row sees.
func TestUnseenValuesDoNotMatter(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, dtype := range floatTypes {
			const n, size = 60, 72
			c := newCall(9, dtype, 2, 1, size, size, []int64{n}, []int64{n})
			c.a.Causal, c.workers = true, fewWorkers
			c.build(sources[0].layout)
			want := c.run(t)
			for _, in := range []int{InKey, InValue} {
				row := c.in[in][dtype.Size()*c.a.Key.Row*(n-1):]
				for i := range size * dtype.Size() {
					row[i] = 0xff // a NaN of each type
				}
			}
			got := c.run(t)
			row := int(dtype.Size() * c.a.Out.Row * (n - 1))
			require.Equal(t, want[:row], got[:row], "%s", dtype)
			require.NotEqual(t, want[row:row+8*size], got[row:row+8*size], "%s", dtype)
		}
	})
}

// TestDenormals has values below the normal numbers of their type, the same in
// every row: so is their mean, for few rows and for many.
func TestDenormals(t *testing.T) {
	tiny := map[tensor.DType]float64{tensor.Float32: 1e-40, tensor.Float16: 3e-6, tensor.BFloat16: 1e-40}
	eachLevel(t, func(t *testing.T) {
		for _, dtype := range floatTypes {
			for _, rows := range []int64{1, 40} {
				c := newCall(11, dtype, 2, 1, 24, 40, []int64{rows}, []int64{50})
				c.workers = fewWorkers
				c.build(sources[0].layout)
				values := make([]float64, c.problem.In[InValue].Numel())
				for i := range values {
					values[i] = tiny[dtype]
				}
				c.in[InValue] = tensor.FromFloat64s(dtype, values)
				values, err := tensor.Float64s(c.in[InValue], dtype)
				require.NoError(t, err)
				got, err := tensor.Float64s(c.run(t), dtype)
				require.NoError(t, err)
				worst := 0.0
				for _, x := range got[:rows*c.a.Out.Row] {
					worst = max(worst, math.Abs(x/values[0]-1))
				}
				require.Less(t, worst, 0.02, "%s: %d rows", dtype, rows)
			}
		}
	})
}
