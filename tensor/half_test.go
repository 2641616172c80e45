package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// half is one of the two 16-bit types with its reference.
type half struct {
	name  string
	ref   *nearest
	from  func(float32) uint16
	widen func(uint16) float32
}

var halves = []half{
	{"f16", nearestF16, func(f float32) uint16 { return uint16(F16From(f)) }, func(b uint16) float32 { return F16(b).Float32() }},
	{"bf16", nearestBF16, func(f float32) uint16 { return uint16(BF16From(f)) }, func(b uint16) float32 { return BF16(b).Float32() }},
}

// same compares bit patterns; any NaN of the right sign is the wanted NaN.
func (h *half) same(want, got uint16) bool {
	return want == got || h.ref.isNaN(want) && h.ref.isNaN(got) && want>>15 == got>>15
}

func TestHalfWidensEveryPattern(t *testing.T) {
	for _, h := range halves {
		t.Run(h.name, func(t *testing.T) {
			for i := range 1 << 16 {
				bits := uint16(i)
				want, got := h.ref.value(bits), float64(h.widen(bits))
				if h.ref.isNaN(bits) {
					require.True(t, math.IsNaN(got), "%#04x: got %v", bits, got)
					require.Equal(t, bits>>15 == 1, math.Signbit(got), "sign of NaN %#04x", bits)
					continue
				}
				require.Equal(t, math.Float64bits(want), math.Float64bits(got), "%#04x: want %v, got %v", bits, want, got)
			}
		})
	}
}

func TestHalfRoundTripsEveryPattern(t *testing.T) {
	for _, h := range halves {
		t.Run(h.name, func(t *testing.T) {
			quiet := uint16(1) << (h.ref.fracBits - 1)
			for i := range 1 << 16 {
				want := uint16(i)
				if h.ref.isNaN(want) {
					want |= quiet
				}
				require.Equal(t, want, h.from(h.widen(uint16(i))), "%#04x", i)
			}
		})
	}
}

func TestHalfRoundsAtEveryCut(t *testing.T) {
	for _, h := range halves {
		t.Run(h.name, func(t *testing.T) {
			cuts := 0
			h.ref.cuts(func(x float32) {
				cuts++
				if want, got := h.ref.round(float64(x)), h.from(x); want != got {
					require.Failf(t, "wrong rounding", "%v (%#08x): want %#04x, got %#04x", x, math.Float32bits(x), want, got)
				}
			})
			require.Greater(t, cuts, 300_000)
		})
	}
}

func TestHalfRoundsRandomFloats(t *testing.T) {
	for _, h := range halves {
		t.Run(h.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for range 300_000 {
				x := math.Float32frombits(r.Uint32())
				if want, got := h.ref.round(float64(x)), h.from(x); !h.same(want, got) {
					require.Failf(t, "wrong rounding", "%v (%#08x): want %#04x, got %#04x", x, math.Float32bits(x), want, got)
				}
			}
		})
	}
}

func TestF16Boundaries(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		name string
		in   float32
		want F16
	}{
		{"zero", 0, 0},
		{"negative zero", float32(math.Copysign(0, -1)), 0x8000},
		{"one", 1, 0x3c00},
		{"tie to even, down", 1 + 0x1p-11, 0x3c00},
		{"tie to even, up", 1 + 3*0x1p-11, 0x3c02},
		{"above a tie", 1 + 0x1p-11 + 0x1p-23, 0x3c01},
		{"largest", 65504, 0x7bff},
		{"below overflow", 65519.996, 0x7bff},
		{"overflow", 65520, 0x7c00},
		{"negative overflow", -65520, 0xfc00},
		{"infinity", inf, 0x7c00},
		{"negative infinity", -inf, 0xfc00},
		{"smallest normal", 0x1p-14, 0x0400},
		{"largest subnormal", 0x1p-14 - 0x1p-24, 0x03ff},
		{"rounds up to normal", 0x1p-14 - 0x1p-25, 0x0400},
		{"smallest subnormal", 0x1p-24, 0x0001},
		{"half of it, tie to zero", 0x1p-25, 0},
		{"above half of it", 0x1p-25 + 0x1p-48, 0x0001},
		{"negative underflow", -0x1p-149, 0x8000},
		{"quiet NaN", math.Float32frombits(0x7fc00000), 0x7e00},
		{"signalling NaN keeps upper bits", math.Float32frombits(0xff802000), 0xfe01},
		{"NaN whose upper bits are zero", math.Float32frombits(0x7f800001), 0x7e00},
	} {
		assert.Equal(t, tt.want, F16From(tt.in), tt.name)
	}
}

func TestBF16Boundaries(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   uint32
		want BF16
	}{
		{"negative zero", 0x80000000, 0x8000},
		{"tie to even, down", 0x3f808000, 0x3f80},
		{"tie to even, up", 0x3f818000, 0x3f82},
		{"above a tie", 0x3f808001, 0x3f81},
		{"largest float32", 0x7f7fffff, 0x7f80},
		{"below overflow", 0x7f7f7fff, 0x7f7f},
		{"infinity", 0xff800000, 0xff80},
		{"smallest subnormal float32", 0x00000001, 0},
		{"tie to zero", 0x00008000, 0},
		{"subnormal", 0x00008001, 0x0001},
		{"NaN whose upper bits are zero", 0x7f800001, 0x7fc0},
		{"NaN that rounding would carry over", 0xffffffff, 0xffff},
	} {
		assert.Equal(t, tt.want, BF16From(math.Float32frombits(tt.in)), tt.name)
	}
}
