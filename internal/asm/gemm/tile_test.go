package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

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

// special are values that a random element takes now and then. Zero and
// denormal bf16 are the same to VDPBF16PS.
var special = []float32{0, float32(math.Copysign(0, -1)), 1e-41, -1e-39, 1e15}

// drawWords fills n words. Int8 elements are those of x, unsigned, or of w.
func drawWords(r *rand.Rand, e Elem, n int, unsigned bool) words {
	w := words{guarded: newGuarded(r, 4*n)}
	for i := range n * int(e.Step()) {
		if e == Int8 {
			v := byte(r.Uint32())
			w.payload[i] = v
			if unsigned {
				w.value = append(w.value, float64(v))
			} else {
				w.value = append(w.value, float64(int8(v)))
			}
			continue
		}
		x := float32(r.NormFloat64())
		if r.IntN(20) == 0 {
			x = special[r.IntN(len(special))]
		}
		if e == BF16 {
			half := math.Float32bits(x) >> 16
			binary.LittleEndian.PutUint16(w.payload[2*i:], uint16(half))
			x = math.Float32frombits(half << 16)
		} else {
			binary.LittleEndian.PutUint32(w.payload[4*i:], math.Float32bits(x))
		}
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
			stride, add := int(s.Columns)+r.IntN(20), r.IntN(2) == 0
			a, b := drawWords(r, s.Elem, rows*steps, !s.Signed), drawWords(r, s.Elem, 32*steps, false)
			c := drawWords(r, F32, (rows-1)*stride+int(s.Columns), false)
			if s.Elem == Int8 {
				for i := range c.value {
					c.value[i] = float64(int32(binary.LittleEndian.Uint32(c.payload[4*i:])))
				}
			}
			s.Rows[rows-1](steps, &a.payload[0], &b.payload[0], &c.payload[0], stride, add, 0, 128)
			for i := range rows {
				for j := range stride {
					at := i*stride + j
					if j >= int(s.Columns) {
						require.True(t, i+1 == rows || c.value[at] == s.sum(c, at), "%s: between the rows", s.Name)
						continue
					}
					want, size := s.reference(a.value, b.value, rows, i, j)
					if add {
						want += c.value[at]
						size += math.Abs(c.value[at])
					}
					tolerance := size*float64(steps*int(s.Elem.Step())+2)*0x1p-24 + float64(steps)*0x1p-100
					if s.Elem == Int8 {
						want, tolerance = float64(int32(int64(want))), 0
					}
					require.InDelta(t, want, s.sum(c, at), tolerance, "%s: rows %d steps %d add %t at %d,%d", s.Name, rows, steps, add, i, j)
				}
			}
			a.check(t)
			b.check(t)
			c.check(t)
		}
	}
}

// reference sums up one element of a tile, and the sizes of its products.
func (s *Set) reference(a, b []float64, rows, i, j int) (sum, size float64) {
	step := int(s.Elem.Step())
	for k := range len(a) / rows / step {
		for h := range step {
			p := a[(k*rows+i)*step+h] * b[(k*32+j)*step+h]
			sum += p
			size += math.Abs(p)
		}
	}
	return sum, size
}

// sum returns a sum of a tile.
func (s *Set) sum(w words, i int) float64 {
	bits := binary.LittleEndian.Uint32(w.payload[4*i:])
	if s.Elem == Int8 {
		return float64(int32(bits))
	}
	return float64(math.Float32frombits(bits))
}

// TestTilesGiveEqualBits checks that a row's sums do not depend on the tile.
func TestTilesGiveEqualBits(t *testing.T) {
	for _, s := range usable() {
		r := rand.New(rand.NewPCG(5, 6))
		const steps = 77
		row, b := drawWords(r, s.Elem, steps, true), drawWords(r, s.Elem, 32*steps, false)
		var first []byte
		for rows := 1; rows <= int(s.MaxRows()); rows++ {
			for at := range rows {
				a := drawWords(r, s.Elem, rows*steps, !s.Signed)
				for k := range steps {
					copy(a.payload[4*(k*rows+at):][:4], row.payload[4*k:])
				}
				c := newGuarded(r, 4*rows*32)
				s.Rows[rows-1](steps, &a.payload[0], &b.payload[0], &c.payload[0], 32, false, 0, 64)
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
			a, b := drawWords(r, s.Elem, rows*steps, !s.Signed), drawWords(r, s.Elem, 32*steps, false)
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
			s.Rows[rows-1](steps, &a.payload[0], &b.payload[0], &c.payload[0], 32, false, 0, 64)
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
						s.Rows[rows-1](steps, &x[0], &w[0], &c[0], 32, true, uintptr(unsafe.Pointer(&w[0])), 128)
					}
				}
				ops := 2 * 100 * steps * rows * int(s.Columns*s.Elem.Step())
				b.ReportMetric(float64(ops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gop/s")
			})
		}
	}
}

// TestRowGivesTheBitsOfTiles compares a row times many panels with a tile for
// each, and looks behind the last column.
func TestRowGivesTheBitsOfTiles(t *testing.T) {
	for _, s := range usable() {
		if s.Row == nil {
			continue
		}
		r := rand.New(rand.NewPCG(21, 22))
		for range 100 {
			steps, columns := 1+r.IntN(90), 1+r.IntN(13*32)
			panels := (columns + 31) / 32
			stride := 32*steps + r.IntN(50)
			a, b := drawWords(r, s.Elem, steps, true), drawWords(r, s.Elem, stride*(panels-1)+32*steps, false)
			if s.Elem == Int8 {
				columns = 32 * panels
			}
			got, want := newGuarded(r, 4*columns), newGuarded(r, 4*32*panels)
			s.Row(steps, columns, &a.payload[0], &b.payload[0], &got.payload[0], 4*stride)
			for j := 0; j < 32*panels; j += int(s.Columns) {
				s.Rows[0](steps, &a.payload[0], &b.payload[4*(j/32*stride+j%32)], &want.payload[4*j], 0, false, 0, 128)
			}
			require.Equal(t, want.payload[:4*columns], got.payload, "%s: %d steps, %d columns", s.Name, steps, columns)
			a.check(t)
			b.check(t)
			got.check(t)
		}
	}
}
