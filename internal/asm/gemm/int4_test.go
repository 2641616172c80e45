package gemm

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/cpu"
	"goatb/tensor"
)

// usableInt4 lists the sets that this machine can run.
func usableInt4() (out []*Int4Set) {
	for i := range Int4Sets() {
		if s := &Int4Sets()[i]; cpu.Detected().Has(s.Needs) {
			out = append(out, s)
		}
	}
	return out
}

// int4Case is the operands of a tile with their values.
type int4Case struct {
	rows, groups, octets, stride int
	half, add                    bool
	a, b, c                      guarded
	x                            [][]float64 // by row and k
	w                            [][]float64 // by k and column, times the scale
	before                       []float64
	factors                      []float32
}

func drawInt4(r *rand.Rand, s *Int4Set) *int4Case {
	c := &int4Case{
		rows: 1 + r.IntN(len(s.Rows)), groups: 1 + r.IntN(5), octets: 1 + r.IntN(6), stride: int(s.Columns) + r.IntN(9),
		half: r.IntN(2) == 0, add: r.IntN(2) == 0,
	}
	k := c.groups * c.octets * 8
	c.a = newGuarded(r, 2*k*c.rows)
	for range c.rows {
		c.x = append(c.x, make([]float64, k))
		c.factors = append(c.factors, float32(r.NormFloat64()))
	}
	for i := range k * c.rows {
		v := int16(r.Uint32())
		binary.LittleEndian.PutUint16(c.a.payload[2*i:], uint16(v))
		c.x[i/2%c.rows][i/2/c.rows*2+i%2] = float64(v)
	}
	scaleBytes := 4
	if c.half {
		scaleBytes = 2
	}
	c.b = newGuarded(r, c.groups*(32*scaleBytes+128*c.octets))
	c.w = make([][]float64, k)
	for g := range c.groups {
		at := g * (32*scaleBytes + 128*c.octets)
		scale := make([]float64, 32)
		for j := range scale {
			f := tensor.F16From(float32(r.NormFloat64()))
			scale[j] = float64(f.Float32())
			if c.half {
				binary.LittleEndian.PutUint16(c.b.payload[at+2*j:], uint16(f))
			} else {
				binary.LittleEndian.PutUint32(c.b.payload[at+4*j:], math.Float32bits(f.Float32()))
			}
		}
		at += 32 * scaleBytes
		for o := range c.octets {
			for e := range 8 {
				row := make([]float64, 32)
				for j := range row {
					row[j] = float64(int8(binary.LittleEndian.Uint16(c.octet(r, at+128*o, j, e))>>(4*(e/2))<<4)>>4) * scale[j]
				}
				c.w[(g*c.octets+o)*8+e] = row
			}
		}
	}
	c.c = newGuarded(r, 4*((c.rows-1)*c.stride+int(s.Columns)))
	for i := range len(c.c.payload) / 4 {
		f := float32(r.NormFloat64())
		binary.LittleEndian.PutUint32(c.c.payload[4*i:], math.Float32bits(f))
		c.before = append(c.before, float64(f))
	}
	return c
}

// octet returns the word of column j and element e, random at first.
func (c *int4Case) octet(r *rand.Rand, at, j, e int) []byte {
	word := c.b.payload[at+4*j+2*(e%2):]
	if e < 2 {
		binary.LittleEndian.PutUint16(word, uint16(r.Uint32()))
	}
	return word
}

func TestInt4Tiles(t *testing.T) {
	for _, s := range usableInt4() {
		r := rand.New(rand.NewPCG(15, 16))
		for range 300 {
			c := drawInt4(r, s)
			scaleBytes, from := 4, int(s.Columns)*r.IntN(32/int(s.Columns)) // of the panel's columns
			if c.half {
				scaleBytes = 2
			}
			s.Rows[c.rows-1](c.groups, c.octets, &c.a.payload[0], &c.b.payload[32*scaleBytes+4*from], &c.b.payload[from*scaleBytes],
				&c.c.payload[0], c.stride, c.add, &c.factors[0], c.half, 0, 64)
			for i := range c.rows {
				for j := range int(s.Columns) {
					at, j := i*c.stride+j, from+j
					want, size := 0.0, 0.0
					for k := range c.w {
						want += c.x[i][k] * c.w[k][j]
						size += math.Abs(c.x[i][k] * c.w[k][j])
					}
					want, size = want*float64(c.factors[i]), size*math.Abs(float64(c.factors[i]))
					if c.add {
						want, size = want+c.before[at], size+math.Abs(c.before[at])
					}
					got := float64(math.Float32frombits(binary.LittleEndian.Uint32(c.c.payload[4*at:])))
					require.InDelta(t, want, got, size*float64(c.groups+3)*0x1p-24, "%s: %+v at %d,%d", s.Name, [3]int{c.rows, c.groups, c.octets}, i, j)
				}
			}
			c.c.check(t)
		}
	}
}

// TestInt4RowsAreTiles compares rows with tiles, chunk by chunk, bit by bit: with
// elements and weights at the ends of their ranges too, and sums that wrap.
func TestInt4RowsAreTiles(t *testing.T) {
	for _, s := range usableInt4() {
		if s.Row == nil {
			continue
		}
		r := rand.New(rand.NewPCG(19, 20))
		for range 300 {
			panels, groups, chunk, octets, half := 1+r.IntN(4), 1+r.IntN(9), 1+r.IntN(4), 1+r.IntN(6), r.IntN(2) == 0
			scaleBytes := 4
			if half {
				scaleBytes = 2
			}
			x := make([]int16, 8*octets*groups)
			for i := range x {
				x[i] = []int16{int16(r.IntN(2*32639+1) - 32639), int16(r.IntN(5) - 2), 32639, -32639}[r.IntN(4)]
			}
			group := 32*scaleBytes + 128*octets
			w := newGuarded(r, panels*groups*group)
			for i := range w.payload {
				w.payload[i] = []byte{byte(r.Uint32()), 0x88, 0x77}[r.IntN(3)]
			}
			for at := 0; at < len(w.payload); at += group {
				for j := range 32 {
					f := tensor.F16From(float32(r.NormFloat64()))
					if half {
						binary.LittleEndian.PutUint16(w.payload[at+2*j:], uint16(f))
					} else {
						binary.LittleEndian.PutUint32(w.payload[at+4*j:], math.Float32bits(f.Float32()))
					}
				}
			}
			factors := make([]float32, (groups-1)/chunk+1)
			for i := range factors {
				factors[i] = float32(r.NormFloat64())
			}
			want := make([]float32, 32*panels)
			for p := range panels {
				for c := range factors {
					from := c * chunk
					at := w.payload[(p*groups+from)*group:]
					var words []byte
					for _, v := range x[8*octets*from:] {
						words = binary.LittleEndian.AppendUint16(words, uint16(v))
					}
					out := make([]byte, 128)
					for j, v := range want[32*p : 32*p+32] {
						binary.LittleEndian.PutUint32(out[4*j:], math.Float32bits(v))
					}
					s.Rows[0](min(chunk, groups-from), octets, &words[0], &at[32*scaleBytes], &at[0], &out[0], 32, c > 0, &factors[c], half, 0, 0)
					for j := range 32 {
						want[32*p+j] = math.Float32frombits(binary.LittleEndian.Uint32(out[4*j:]))
					}
				}
			}
			ordered, less := newGuarded(r, 2*len(x)), make([]int32, groups+1)
			less[groups] = 77
			s.Order(groups, octets, &ordered.payload[0], &less[0], &x[0])
			ordered.check(t)
			require.EqualValues(t, 77, less[groups])
			got := make([]float32, 32*panels+1)
			got[32*panels] = 77
			s.Row(panels, groups, chunk, octets, &ordered.payload[0], &less[0], &factors[0], &w.payload[0], &got[0], half)
			require.Equal(t, want, got[:32*panels], "%d panels, %d groups of %d octets, chunks of %d", panels, groups, octets, chunk)
			require.EqualValues(t, 77, got[32*panels])
		}
	}
}

func TestQuantize(t *testing.T) {
	for _, s := range usableInt4() {
		r := rand.New(rand.NewPCG(17, 18))
		for n := 16; n < 200; n += 16 {
			x, dst := make([]float32, n), make([]int16, n+1)
			want := float32(0)
			for i := range x {
				x[i] = float32(r.NormFloat64())
				want = max(want, float32(math.Abs(float64(x[i]))))
			}
			dst[n] = 77
			require.Equal(t, want, s.Largest(n, &x[0]))
			factor := 32767 / want
			s.ToInt16(n, &dst[0], &x[0], factor)
			for i := range x {
				require.Equal(t, int16(math.RoundToEven(float64(x[i]*factor))), dst[i])
			}
			require.EqualValues(t, 77, dst[n])
			x[r.IntN(n)] = float32(math.Inf(-1))
			require.True(t, math.IsInf(float64(s.Largest(n, &x[0])), 1))
			x[r.IntN(n)] = float32(math.NaN())
			require.True(t, math.IsNaN(float64(s.Largest(n, &x[0]))))
		}
	}
}

// BenchmarkInt4Row multiplies a row with panels that lie in the caches.
func BenchmarkInt4Row(b *testing.B) {
	for _, s := range usableInt4() {
		if s.Row == nil {
			continue
		}
		for _, group := range []int{32, 128} {
			b.Run(fmt.Sprintf("set=%s/group=%d", s.Name, group), func(b *testing.B) {
				const k, panels = 2048, 8
				x, less, f, c := make([]byte, 2*k), make([]int32, k/group), make([]float32, 4), make([]float32, 32*panels)
				w := make([]byte, panels*(k/group*(64+16*group)))
				b.SetBytes(int64(len(w)))
				for b.Loop() {
					s.Row(panels, k/group, k/group/4, group/8, &x[0], &less[0], &f[0], &w[0], &c[0], true)
				}
				b.ReportMetric(float64(2*k*panels*32)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gop/s")
			})
		}
	}
}

// BenchmarkInt4Tile multiplies operands that lie in the caches.
func BenchmarkInt4Tile(b *testing.B) {
	for _, s := range usableInt4() {
		for _, group := range []int{32, 128} {
			for rows := 1; rows <= len(s.Rows); rows++ {
				b.Run(fmt.Sprintf("set=%s/group=%d/rows=%d", s.Name, group, rows), func(b *testing.B) {
					const k = 1024
					x, c := make([]byte, 2*k*rows), make([]byte, 4*32*rows)
					w := make([]byte, k/group*(64+16*group))
					f := make([]float32, rows)
					for b.Loop() {
						for range 10 {
							s.Rows[rows-1](k/group, group/8, &x[0], &w[64], &w[0], &c[0], 32, true, &f[0], true, 0, 0)
						}
					}
					b.ReportMetric(float64(10*2*k*rows*int(s.Columns))*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gop/s")
				})
			}
		}
	}
}
