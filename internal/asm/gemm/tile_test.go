package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
)

// usable lists the sets that this machine can run.
func usable() (out []*Set) {
	for i := range Sets() {
		if s := &Sets()[i]; cpu.Detected().Has(s.Needs) {
			out = append(out, s)
		}
	}
	return out
}

// words is a buffer of random elements of a type and their values.
type words struct {
	guarded
	value []float64
}

// special are values that a random element takes now and then.
var special = []float32{0, float32(math.Copysign(0, -1)), 1e-41, -1e-39, 1e15}

// drawWords fills n words.
func drawWords(r *rand.Rand, e Elem, n int) words {
	w := words{guarded: newGuarded(r, 4*n)}
	for i := range n {
		x := float32(r.NormFloat64())
		if r.IntN(20) == 0 {
			x = special[r.IntN(len(special))]
		}
		binary.LittleEndian.PutUint32(w.payload[4*i:], math.Float32bits(x))
		w.value = append(w.value, float64(x))
	}
	return w
}

// TestTiles compares every tile with float64 sums.
func TestTiles(t *testing.T) {
	for _, s := range usable() {
		r := rand.New(rand.NewPCG(3, 4))
		for range 300 {
			rows, steps := 1+r.IntN(int(s.MaxRows())), 1+r.IntN(40)
			stride := int(s.Columns) + r.IntN(20)
			a, b := drawWords(r, s.Elem, rows*steps), drawWords(r, s.Elem, 32*steps)
			c := drawWords(r, F32, (rows-1)*stride+int(s.Columns))
			add := r.IntN(2) == 0
			s.Rows[rows-1](steps, &a.payload[0], &b.payload[0], &c.payload[0], stride, add, nil)
			for i := range rows {
				for j := range stride {
					at := i*stride + j
					if j >= int(s.Columns) {
						if i+1 < rows {
							require.Equal(t, c.value[at], f32at(c, at), "%s: between the rows", s.Name)
						}
						continue
					}
					want, size := 0.0, 0.0
					if add {
						want = c.value[at]
						size = math.Abs(want)
					}
					for k := range steps {
						p := a.value[k*rows+i] * b.value[k*32+j]
						want += p
						size += math.Abs(p)
					}
					require.InDelta(t, want, f32at(c, at), size*float64(steps+2)*0x1p-24+0x1p-149, "%s: rows %d steps %d add %t at %d,%d", s.Name, rows, steps, add, i, j)
				}
			}
			a.check(t)
			b.check(t)
			c.check(t)
		}
	}
}

func f32at(w words, i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(w.payload[4*i:])))
}

// TestTilesGiveEqualBits checks that a row's sums do not depend on the tile.
func TestTilesGiveEqualBits(t *testing.T) {
	for _, s := range usable() {
		r := rand.New(rand.NewPCG(5, 6))
		const steps = 77
		row, b := drawWords(r, s.Elem, steps), drawWords(r, s.Elem, 32*steps)
		var first []byte
		for rows := 1; rows <= int(s.MaxRows()); rows++ {
			for at := range rows {
				a := drawWords(r, s.Elem, rows*steps)
				for k := range steps {
					copy(a.payload[4*(k*rows+at):][:4], row.payload[4*k:])
				}
				c := newGuarded(r, 4*rows*32)
				s.Rows[rows-1](steps, &a.payload[0], &b.payload[0], &c.payload[0], 32, false, nil)
				got := c.payload[4*at*32:][:4*s.Columns]
				if first == nil {
					first = got
				}
				require.Equal(t, first, got, "%s: row %d of %d", s.Name, at, rows)
			}
		}
	}
}

// TestTilesSpread checks NaN and infinities.
func TestTilesSpread(t *testing.T) {
	for _, s := range usable() {
		if s.Elem == Int8 {
			continue
		}
		r := rand.New(rand.NewPCG(7, 8))
		for rows := 1; rows <= int(s.MaxRows()); rows++ {
			const steps = 9
			a, b := drawWords(r, s.Elem, rows*steps), drawWords(r, s.Elem, 32*steps)
			c := newGuarded(r, 4*rows*32)
			for i := range b.payload { // ones, and one column of infinities
				b.payload[i] = 0
			}
			one, inf := ones[s.Elem], infinities[s.Elem]
			for k := range steps {
				for j := range 32 {
					binary.LittleEndian.PutUint32(b.payload[4*(32*k+j):], one)
				}
				binary.LittleEndian.PutUint32(b.payload[4*(32*k+5):], inf)
			}
			for i := range a.payload {
				a.payload[i] = 0
			}
			binary.LittleEndian.PutUint32(a.payload, nans[s.Elem])
			s.Rows[rows-1](steps, &a.payload[0], &b.payload[0], &c.payload[0], 32, false, nil)
			for i := range rows {
				for j := range int(s.Columns) {
					got := float64(math.Float32frombits(binary.LittleEndian.Uint32(c.payload[4*(32*i+j):])))
					if i == 0 || j == 5 { // NaN times one, and zero times infinity
						require.True(t, math.IsNaN(got), "%s: %d,%d: %v", s.Name, i, j, got)
					} else {
						require.Zero(t, got, "%s: %d,%d", s.Name, i, j)
					}
				}
			}
		}
	}
}

var (
	ones       = map[Elem]uint32{F32: 0x3f800000, BF16: 0x3f803f80}
	infinities = map[Elem]uint32{F32: 0x7f800000, BF16: 0x7f807f80}
	nans       = map[Elem]uint32{F32: 0x7fc00000, BF16: 0x00007fc0}
)

// BenchmarkTile multiplies operands that lie in the caches.
func BenchmarkTile(b *testing.B) {
	for _, s := range usable() {
		for rows := 1; rows <= int(s.MaxRows()); rows++ {
			b.Run(fmt.Sprintf("set=%s/rows=%d", s.Name, rows), func(b *testing.B) {
				const steps = 256
				x, w, c := make([]byte, 4*steps*rows), make([]byte, 128*steps), make([]byte, 4*32*rows)
				for b.Loop() {
					for range 100 {
						s.Rows[rows-1](steps, &x[0], &w[0], &c[0], 32, true, &w[0])
					}
				}
				ops := 2 * 100 * steps * rows * int(s.Columns*s.Elem.Step())
				b.ReportMetric(float64(ops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gop/s")
			})
		}
	}
}
