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

// TestWiden compares every element, NaN and denormals too.
func TestWiden(t *testing.T) {
	for _, s := range usable() {
		if s.Elem != F32 {
			continue
		}
		r := rand.New(rand.NewPCG(11, 12))
		for elem, n := range narrows(s) {
			steps := int(1 << 19 / n.StepBytes)
			src := drawPanel(r, n, steps, false)
			pairs := int(n.StepBytes / 64)
			dst := newGuarded(r, steps*pairs*128)
			n.Widen(steps, &dst.payload[0], &src.payload[0])
			for i := range steps * 32 * pairs {
				k, c := i/32, i%32
				bits := binary.LittleEndian.Uint16(src.payload[2*((k/pairs*32+c)*pairs+k%pairs):])
				want := tensor.F16(bits).Float32()
				if elem == tensor.BFloat16 {
					want = tensor.BF16(bits).Float32()
				}
				got := math.Float32frombits(binary.LittleEndian.Uint32(dst.payload[4*i:]))
				if want != want {
					require.True(t, got != got, "%s %s: %04x", s.Name, elem, bits)
					continue
				}
				require.Equal(t, want, got, "%s %s: %04x", s.Name, elem, bits)
			}
			dst.check(t)
		}
	}
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
					wide := newGuarded(r, steps*pairs*128)
					n.Widen(steps, &wide.payload[0], &src.payload[0])
					got, want := newGuarded(r, 4*(rows-1)*stride+4*int(s.Columns)), newGuarded(r, 4*(rows-1)*stride+4*int(s.Columns))
					for _, add := range []bool{false, true} {
						n.Rows[rows-1](steps, &a.payload[0], &src.payload[0], &got.payload[0], stride, add, 0, 64)
						s.Rows[rows-1](steps*pairs, &a.payload[0], &wide.payload[0], &want.payload[0], stride, add, 0, 64)
						require.Equal(t, want.payload, got.payload, "%s %s: rows %d steps %d", s.Name, elem, rows, steps)
					}
					src.check(t)
					got.check(t)
				}
			}
		}
	}
}
