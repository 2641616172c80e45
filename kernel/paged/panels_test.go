package paged

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/asm/attend"
	"goatb/internal/cpu"
	"goatb/tensor"
)

// panelled is a problem whose second sequence has rows enough for panels, over more
// than a part of a context, with an odd end.
func panelled(kv tensor.DType, dk, dv, bs int64) setup {
	s := plain()
	s.kv, s.dk, s.dv, s.bs, s.order = kv, dk, dv, bs, true
	s.params.QueryLens, s.params.Heads, s.params.KVHeads = true, 4, 2
	s.contexts, s.queryLens, s.tokens = []int64{5, 531, 1}, []int64{2, 9, 1}, 12
	s.columns = (531 + bs - 1) / bs
	s.blocks = 3 * s.columns
	if kv == i8 {
		s.params.Quant = Dequant
	}
	return s
}

// TestPanels compares rows that multiply packed keys and values with float64, and bit
// by bit with each row alone, which multiplies them as they lie.
func TestPanels(t *testing.T) {
	if _, ok := attend.BestPanels(cpu.Active()); !ok {
		t.Skip("no loops for panels at this level")
	}
	for _, kv := range []tensor.DType{f32, f16, bf16, i8} {
		for i, size := range [][3]int64{{64, 64, 16}, {20, 32, 48}, {72, 96, 128}} {
			if kv == bf16 || kv == f16 || kv == i8 {
				size[0] = (size[0] + 15) / 16 * 16
			}
			s := panelled(kv, size[0], size[1], size[2])
			s.params.HeadMajor = i%2 == 1
			t.Run(fmt.Sprintf("%s/%v", kv, size), func(t *testing.T) {
				check(t, s)
				testRowsAlone(t, s)
				s.params.Mask, s.maskShape, s.hide = ByPosition, []int64{544, 544}, 0.5
				check(t, s)
			})
		}
	}
}

// testRowsAlone compares the rows of the second sequence with those of launches of
// one.
func testRowsAlone(t *testing.T, s setup) {
	many := s.build()
	var g geometry
	require.NoError(t, g.measure(&many.p, many.params))
	require.True(t, g.packs())
	rows := many.attend(t)
	size, q, first := len(rows)/int(s.tokens), len(many.in[InQuery])/int(s.tokens), int(s.queryLens[0])
	for _, r := range []int{0, 6, 8} {
		s.tokens, s.queryLens = 1, []int64{0, 1, 0}
		one := s.build()
		for in := range many.in {
			one.in[in] = many.in[in]
		}
		one.in[InQuery] = many.in[InQuery][(first+r)*q:][:q]
		require.True(t, bytes.Equal(rows[(first+r)*size:][:size], one.attend(t)), "row %d", r)
	}
}
