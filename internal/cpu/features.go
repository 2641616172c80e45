package cpu

import "strings"

// Features is a set of instruction sets. Larger levels contain smaller ones.
type Features uint32

// Instruction sets.
const (
	// None is plain Go.
	None Features = 0
	// AVX2 is AVX2 with FMA, F16C and BMI2: 16 registers of 32 bytes.
	AVX2 Features = 1 << (iota - 1)
	avx512
	vnni
	bf16
	fastBF16

	// AVX512 is AVX-512 F, BW, CD, DQ and VL: 32 registers of 64 bytes.
	AVX512 = AVX2 | avx512
	// VNNI is AVX512 with VPDPBUSD and VPDPWSSD.
	VNNI = AVX512 | vnni
	// BF16 is AVX512 with VDPBF16PS and the conversions to bf16.
	BF16 = AVX512 | bf16
	// FastBF16 is BF16 on processors whose VDPBF16PS does more in a cycle than
	// widening bf16 and VFMADD231PS: twice as much on AMD's, where Intel's do half.
	FastBF16 = BF16 | fastBF16

	all = VNNI | FastBF16
)

// Has reports whether f contains all of want.
func (f Features) Has(want Features) bool { return f&want == want }

// Level returns the highest of None, AVX2 and AVX512 that f contains.
func (f Features) Level() Features {
	for _, level := range []Features{AVX512, AVX2} {
		if f.Has(level) {
			return level
		}
	}
	return None
}

// String returns names as in "avx512+vnni", and "none" for None.
func (f Features) String() string {
	names := map[Features]string{None: "none", AVX2: "avx2", AVX512: "avx512"}
	parts := []string{names[f.Level()]}
	if f.Has(VNNI) {
		parts = append(parts, "vnni")
	}
	if f.Has(BF16) {
		parts = append(parts, "bf16")
	}
	if f.Has(FastBF16) {
		parts = append(parts, "fastbf16")
	}
	return strings.Join(parts, "+")
}

// Levels lists the sets that tests run with: the levels that f contains, the
// lowest first, and f itself.
func Levels(f Features) []Features {
	out := []Features{None}
	for _, level := range []Features{AVX2, AVX512, f} {
		if f.Has(level) && level != out[len(out)-1] {
			out = append(out, level)
		}
	}
	return out
}
