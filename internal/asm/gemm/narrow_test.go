package gemm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

// narrows lists the loops of a set for panels of 2-byte elements.
func narrows(s *Set) map[tensor.DType]*Narrow {
	return map[tensor.DType]*Narrow{tensor.Float16: &s.F16, tensor.BFloat16: &s.BF16}
}

// drawPanel makes a panel of every kind of 2-byte element.
func drawPanel(r *rand.Rand, n *Narrow, steps int, finite bool) guarded {
	g := newGuarded(r, steps*int(n.StepBytes))
	for i := range g.payload {
		g.payload[i] = byte(r.Uint32())
		if finite && i%2 == 1 {
			g.payload[i] &= 0xbf
		}
	}
	return g
}

// TestWidenings compares every element of the widened panel, NaN and denormals too.
func TestWidenings(t *testing.T) {
	for _, s := range usable() {
		if s.Elem != F32 {
			continue
		}
		r := rand.New(rand.NewPCG(11, 12))
		for elem, n := range narrows(s) {
			require.Equal(t, n.MaxRows()-n.LeastWidening()+1, int64(len(n.Widenings)))
			for i, tile := range n.Widenings {
				steps := int(1<<19/n.StepBytes) - i
				src := drawPanel(r, n, steps, false)
				pairs, rows := int(n.StepBytes/64), int(n.LeastWidening())+i
				a := drawWords(r, F32, rows*steps*pairs, false)
				dst, sums := newGuarded(r, steps*pairs*128), newGuarded(r, 128*rows)
				for h := 0; h < 32; h += int(s.Columns) {
					tile(steps, &a.payload[0], &src.payload[h*int(n.StepBytes)/32], &sums.payload[4*h], 32, false, 0, 64, &dst.payload[4*h])
				}
				wantWidened(t, s.Name, elem, pairs, src.payload, dst.payload)
				dst.check(t)
				sums.check(t)
			}
		}
	}
}

// wantWidened compares a widened panel with its source, whose steps hold one or two
// elements of a column.
func wantWidened(t *testing.T, name string, elem tensor.DType, pairs int, src, dst []byte) {
	t.Helper()
	for i, all := 0, widened(elem, pairs, src); i < len(all); i += 4 {
		want, got := binary.LittleEndian.Uint32(all[i:]), binary.LittleEndian.Uint32(dst[i:])
		const sign, infinity = 1 << 31, 0x7f800000
		if want&^sign > infinity && got&^sign > infinity {
			continue // NaN
		}
		if want != got {
			require.Equal(t, want, got, "%s %s: element %d", name, elem, i/4)
		}
	}
}

// widened returns a panel of 2-byte elements as f32.
func widened(elem tensor.DType, pairs int, src []byte) []byte {
	dst := make([]byte, 2*len(src))
	for i := range len(src) / 2 {
		k, c := i/32, i%32
		bits := binary.LittleEndian.Uint16(src[2*((k/pairs*32+c)*pairs+k%pairs):])
		v := tensor.F16(bits).Float32()
		if elem == tensor.BFloat16 {
			v = tensor.BF16(bits).Float32()
		}
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
	return dst
}

// TestNarrowTiles compares tiles with those of the widened panel, bit by bit.
func TestNarrowTiles(t *testing.T) {
	for _, s := range usable() {
		if s.Elem != F32 {
			continue
		}
		r := rand.New(rand.NewPCG(13, 14))
		for elem, n := range narrows(s) {
			require.LessOrEqual(t, len(n.Rows), int(s.MaxRows()))
			pairs := int(n.StepBytes / 64)
			for rows := 1; rows <= len(n.Rows); rows++ {
				for range 20 {
					steps, stride := 1+r.IntN(30), 32+r.IntN(9)
					a := drawWords(r, F32, rows*steps*pairs, false)
					src := drawPanel(r, n, steps, true)
					wide := widened(elem, pairs, src.payload)
					got, want := newGuarded(r, 4*(rows-1)*stride+4*int(s.Columns)), newGuarded(r, 4*(rows-1)*stride+4*int(s.Columns))
					for _, add := range []bool{false, true} {
						n.Rows[rows-1](steps, &a.payload[0], &src.payload[0], &got.payload[0], stride, add, 0, 64)
						s.Rows[rows-1](steps*pairs, &a.payload[0], &wide[0], &want.payload[0], stride, add, 0, 64)
						require.Equal(t, want.payload, got.payload, "%s %s: rows %d steps %d", s.Name, elem, rows, steps)
					}
					if least := int(n.LeastWidening()); rows >= least {
						dst := newGuarded(r, len(wide))
						n.Widenings[rows-least](steps, &a.payload[0], &src.payload[0], &got.payload[0], stride, false, 0, 64, &dst.payload[0])
						s.Rows[rows-1](steps*pairs, &a.payload[0], &wide[0], &want.payload[0], stride, false, 0, 64)
						require.Equal(t, want.payload, got.payload, "%s %s: rows %d steps %d, widening", s.Name, elem, rows, steps)
					}
					src.check(t)
					got.check(t)
				}
			}
		}
	}
}

// TestNarrowRowGivesTheBitsOfTiles compares a row times many panels with a tile for
// each, which adds up chunks.
func TestNarrowRowGivesTheBitsOfTiles(t *testing.T) {
	for _, s := range usable() {
		for elem, n := range narrows(s) {
			if n.Row == nil {
				continue
			}
			require.Equal(t, tensor.BFloat16, elem, "f32 rows are twice as long")
			r := rand.New(rand.NewPCG(31, 32))
			for range 100 {
				steps, chunk, panels := 1+r.IntN(90), 1+r.IntN(40), 1+r.IntN(5)
				stride := steps*int(n.StepBytes) + 64*r.IntN(3)
				x, b := newGuarded(r, 4*steps), drawPanel(r, n, stride/int(n.StepBytes)*panels+panels, true)
				wide := newGuarded(r, 8*steps)
				for i := range 2 * steps {
					v := float32(r.NormFloat64())
					binary.LittleEndian.PutUint16(x.payload[2*i:], uint16(tensor.BF16From(v)))
					binary.LittleEndian.PutUint32(wide.payload[4*i:], math.Float32bits(tensor.BF16From(v).Float32()))
				}
				got, want := newGuarded(r, 128*panels), newGuarded(r, 128*panels)
				n.Row(steps, chunk, panels, &x.payload[0], &b.payload[0], &got.payload[0], stride)
				for p := range panels {
					for at := 0; at < steps; at += chunk {
						for h := 0; h < 32; h += int(s.Columns) {
							n.Rows[0](min(chunk, steps-at), &wide.payload[8*at], &b.payload[p*stride+at*int(n.StepBytes)+4*h], &want.payload[128*p+4*h], 0, at > 0, 0, 128)
						}
					}
				}
				require.Equal(t, want.payload, got.payload, "%s: %d steps in chunks of %d, %d panels", s.Name, steps, chunk, panels)
				x.check(t)
				b.check(t)
				got.check(t)
			}
		}
	}
}
