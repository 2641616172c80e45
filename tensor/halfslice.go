package tensor

import (
	"math"
	"sync"

	"goatb/internal/asm/vecmath"
)

// The slice conversions below give the same bits as their element functions
// and convert the first min(len(dst), len(src)) elements, as copy does. They
// allocate nothing, except that plain Go's F16ToF32 (256 KiB) and F32ToF16
// (4 KiB) build their table at the first call.

// f16Values holds every f16 as float32. Reading it is three times as fast as
// computing, also when the source streams from memory.
var f16Values = sync.OnceValue(func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = F16(i).Float32()
	}
	return t
})

// F16ToF32 widens src into dst.
func F16ToF32(dst []float32, src []F16) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	if vecmath.WidenF16(dst, src) {
		return
	}
	t := f16Values()
	for len(src) >= 8 && len(dst) >= 8 {
		s, d := (*[8]F16)(src), (*[8]float32)(dst)
		d[0], d[1], d[2], d[3] = t[s[0]], t[s[1]], t[s[2]], t[s[3]]
		d[4], d[5], d[6], d[7] = t[s[4]], t[s[5]], t[s[6]], t[s[7]]
		src, dst = src[8:], dst[8:]
	}
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = t[h]
	}
}

// f16Round says how a float32 of one sign and exponent becomes an f16. Adding
// anchor to the magnitude lets the addition round to the f16's last place and
// leaves the significand in the low 12 bits of the sum; base adds exponent and
// sign, and a significand that rounded up carries into the exponent.
type f16Round struct {
	anchor float32
	base   uint16
}

// f16Rounds is indexed by the upper nine bits of the float32.
var f16Rounds = sync.OnceValue(func() *[512]f16Round {
	const (
		minNormal = 127 - 14 // float32 exponent of the smallest normal f16
		tooLarge  = 127 + 16 // and of the first power of two beyond f16
	)
	t := new([512]f16Round)
	for i := range t {
		sign, exp := uint16(i>>8)<<15, i&0xff
		if exp >= tooLarge {
			t[i] = f16Round{float32(math.Inf(1)), sign | 0x7c00}
			continue
		}
		exp = max(exp, minNormal)
		t[i] = f16Round{math.Float32frombits(uint32(exp+13) << 23), sign + uint16(exp-minNormal)<<10}
	}
	return t
})

// F32ToF16 rounds src to nearest even into dst.
func F32ToF16(dst []F16, src []float32) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	if vecmath.NarrowF16(dst, src) {
		return
	}
	t := f16Rounds()
	for i, f := range src {
		b := math.Float32bits(f)
		r := &t[b>>23]
		sum := math.Float32bits(math.Float32frombits(b&0x7fffffff) + r.anchor)
		h := r.base + uint16(sum&0xfff)
		if b&0x7fffffff > 0x7f800000 {
			h = uint16(b>>16&0x8000 | 0x7e00 | b>>13&0x1ff)
		}
		dst[i] = F16(h)
	}
}

// BF16ToF32 widens src into dst.
func BF16ToF32(dst []float32, src []BF16) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	if vecmath.WidenBF16(dst, src) {
		return
	}
	for len(src) >= 8 && len(dst) >= 8 {
		s, d := (*[8]BF16)(src), (*[8]float32)(dst)
		d[0], d[1], d[2], d[3] = s[0].Float32(), s[1].Float32(), s[2].Float32(), s[3].Float32()
		d[4], d[5], d[6], d[7] = s[4].Float32(), s[5].Float32(), s[6].Float32(), s[7].Float32()
		src, dst = src[8:], dst[8:]
	}
	dst = dst[:len(src)]
	for i, h := range src {
		dst[i] = h.Float32()
	}
}

// F32ToBF16 rounds src to nearest even into dst.
func F32ToBF16(dst []BF16, src []float32) {
	n := min(len(dst), len(src))
	dst, src = dst[:n], src[:n]
	if vecmath.NarrowBF16(dst, src) {
		return
	}
	for i, f := range src {
		dst[i] = BF16From(f)
	}
}
