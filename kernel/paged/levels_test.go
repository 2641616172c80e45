package paged

import (
	"math/rand/v2"
	"testing"

	"goatb/internal/cpu"
	"goatb/tensor"
)

// TestLevels runs tests again in plain Go and with every assembly of this machine but
// the widest, which the tests themselves run with: values against float64, and bits that
// must not change. Short runs are in plain Go alone.
func TestLevels(t *testing.T) {
	levels := cpu.Levels(cpu.Detected())
	levels = levels[:len(levels)-1]
	if testing.Short() {
		levels = levels[:min(len(levels), 1)]
	}
	for _, level := range levels {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			for name, test := range map[string]func(t *testing.T){
				"loads": testLoads, "query lens": TestAttendQueryLens, "quantised": TestAttendQuant, "batch": TestBatchDoesNotMatter,
				"query tile": TestQueryTileDoesNotMatter, "not a number": TestNaNStaysInItsRow, "panels": TestPanels,
				"hidden values": TestHiddenValues,
			} {
				t.Run(name, test)
			}
		})
	}
}

// testLoads compares rows of which a few are loaded at once with float64.
func testLoads(t *testing.T) {
	s := plain()
	wide(&s)
	s.bs, s.columns, s.blocks = 24, 31, 93
	check(t, s)
}

// FuzzAttend compares drawn problems with float64 at the levels of this machine.
func FuzzAttend(f *testing.F) {
	f.Add(uint64(1), uint8(64), uint8(40), uint16(700), uint8(16))
	f.Add(uint64(2), uint8(3), uint8(200), uint16(0), uint8(3))
	f.Add(uint64(3), uint8(127), uint8(127), uint16(513), uint8(127))
	f.Fuzz(func(t *testing.T, seed uint64, keyDim, valueDim uint8, context uint16, block uint8) {
		levels := cpu.Levels(cpu.Detected())
		defer cpu.Limit(levels[seed%uint64(len(levels))])()
		r := rand.New(rand.NewPCG(seed, 5))
		s := plain()
		s.seed, s.dk, s.dv, s.bs = seed, int64(keyDim)+1, int64(valueDim)+1, int64(block)+1
		s.contexts = []int64{int64(context % 1100), r.Int64N(40), r.Int64N(600)}
		s.columns = (max(s.contexts[0], s.contexts[2], 40) + s.bs - 1) / s.bs
		s.blocks = 3 * s.columns
		s.params.KVHeads = 1 + r.Int64N(5)
		s.params.Heads, s.params.HeadMajor = s.params.KVHeads*(1+r.Int64N(4)), r.IntN(2) == 0
		s.kv = []tensor.DType{f32, f16, bf16, i8}[r.IntN(4)]
		if s.kv == i8 {
			s.params.Quant, s.offsets = Dequant, r.IntN(2) == 0
		}
		if r.IntN(2) == 0 {
			prompts(&s, r)
		}
		check(t, s)
	})
}

// prompts gives the sequences of a problem up to 12 query rows each, which see the
// positions up to their own or what a mask shows.
func prompts(s *setup, r *rand.Rand) {
	s.params.QueryLens, s.queryLens, s.tokens = true, nil, 0
	for _, n := range s.contexts {
		rows := r.Int64N(min(n, 12) + 1)
		s.queryLens = append(s.queryLens, rows)
		s.tokens += rows
	}
	s.tokens += r.Int64N(3) + 1
	switch r.IntN(3) {
	case 0:
		s.params.Mask = Causal
	case 1:
		s.params.Mask, s.maskShape, s.hide = ByToken, []int64{s.tokens, s.columns * s.bs}, r.Float64()
	}
}
