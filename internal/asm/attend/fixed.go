package attend

import (
	"unsafe"

	"goatb/internal/cpu"
)

const (
	// FixedChunk is what the width of rows of fixed-point numbers is a multiple of.
	FixedChunk = 32
	// FixedBits is the number of bits of the largest element's magnitude: each is
	// off by up to half of the last one.
	FixedBits = 20
)

// FixedTakes reports whether f allows Fix and FixedScores for rows of a width.
func FixedTakes(f cpu.Features, width int) bool {
	return present && f.Has(cpu.VNNI) && width > 0 && width%FixedChunk == 0
}

// Fix turns the first width elements of a row, in place, into fixed-point numbers
// of three digits, int8, and their unit, 2^-20 of the largest magnitude or less.
// A row with a NaN or an infinity gives NaN when it is multiplied.
func Fix(row []float32, width int) { fixAVX512(&row[:width][0], width) }

// FixedScores is Loops.Scores for int8 rows and rows of X after Fix: the products
// are exact but for the rounding of X and of the last sum of three numbers.
func FixedScores(a *Args, rows int) {
	for done := 0; done < rows; {
		n := min(rows-done, 4)
		if n == 3 {
			n = 2
		}
		b := a.from(done)
		p := (*byte)(unsafe.Pointer(&b))
		switch n {
		case 1:
			scoresFixedx1AVX512(p)
		case 2:
			scoresFixedx2AVX512(p)
		default:
			scoresFixedx4AVX512(p)
		}
		done += n
	}
}
