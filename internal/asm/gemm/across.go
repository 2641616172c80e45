package gemm

import "goatb/internal/cpu"

// Pack packs 32 columns of a matrix whose columns lie side by side, so that the
// elements of a K are a row: rows stride bytes apart become steps of 128 bytes, as
// many rows as a step holds elements of each column. Rows further on are fetched.
type Pack func(steps int, dst, src *byte, stride int)

// Across is the loops of the sizes of elements.
type Across struct {
	// Words, Pairs and Quads copy elements of four, two bytes and one.
	Words, Pairs, Quads Pack
	// F16 and BF16 turn rows into steps of f32.
	F16, BF16 Pack
}

// BestAcross returns the fastest loops that f allows, and none where there are none.
func BestAcross(f cpu.Features) Across {
	if f.Has(cpu.AVX2) {
		return acrossLoops
	}
	return Across{}
}
