package gemm

import "goatb/internal/cpu"

// Peak is a loop of nothing but independent multiply-add instructions. It shows
// how fast a core can do them: the limit of products on it.
type Peak struct {
	// Name is the data type and the width of the registers, as in "f32/512".
	Name string
	// Ops counts the multiplications and additions of one turn of the loop.
	Ops int
	// Run does n turns, n >= 1. A thousand take about 10 µs.
	Run func(n int)
}

// Peaks lists the loops that f allows, the widest last.
func Peaks(f cpu.Features) (out []Peak) {
	for _, p := range peaks {
		if f.Has(p.needs) {
			out = append(out, p.Peak)
		}
	}
	return out
}

type peak struct {
	needs cpu.Features
	Peak
}

// peakChains is the number of instructions of one turn.
const peakChains = 12

// Read returns a loop that reads memory in order and does nothing with it: the
// limit of products whose weights do not stay in caches. Bytes is a positive
// multiple of 256. It is nil when f allows none.
func Read(f cpu.Features) func(p *byte, bytes int) {
	if !f.Has(cpu.AVX2) {
		return nil
	}
	return readLoop
}
