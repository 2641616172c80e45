package paged

import (
	"bytes"
	"fmt"
	"math"
	"slices"
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
			if testing.Short() && i != int(kv)%3 {
				continue
			}
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
				s.params.Mask, s.maskShape = Causal, nil
				check(t, s)
				testCausalRows(t, s)
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

// testCausalRows compares the rows of the second sequence, which see the positions up
// to their own, with those of launches of one at the end of a context.
func testCausalRows(t *testing.T, s setup) {
	many := s.build()
	rows := many.attend(t)
	size, q, first, n := len(rows)/int(s.tokens), len(many.in[InQuery])/int(s.tokens), int(s.queryLens[0]), s.queryLens[1]
	require.EqualValues(t, 9, n)
	s.params.Mask, s.params.QueryLens, s.queryLens, s.tokens = NoMask, false, nil, 3
	contexts := s.contexts
	for _, r := range []int64{0, 5, 8} {
		s.contexts = []int64{0, contexts[1] - n + r + 1, 0}
		one := s.build()
		for in := range many.in {
			one.in[in] = many.in[in]
		}
		at := (first + int(r)) * q
		one.in[InQuery] = many.in[InQuery][at-q : at+2*q]
		require.True(t, bytes.Equal(rows[(first+int(r))*size:][:size], one.attend(t)[size:2*size]), "row %d", r)
	}
}

// TestHiddenValues gives the last rows of a cache infinities: the query rows that do
// not see them must not notice.
func TestHiddenValues(t *testing.T) {
	for _, kv := range []tensor.DType{f32, f16, bf16} {
		for _, heads := range []int64{2, 4} { // few rows, and rows for panels
			s := panelled(kv, 64, 64, 16)
			s.params.Heads, s.params.Mask = heads, Causal
			plain := s.build()
			want := plain.attend(t)
			hidden := s.build()
			d := hidden.p.In[InValue]
			row := d.Dim(2) * d.Dim(3)
			last := []int64{int64(hidden.at(InTables, 1*s.columns+530/16))*16 + 530%16, int64(hidden.at(InTables, 1*s.columns+528/16))*16 + 528%16}
			i := int64(-1)
			hidden.set(InValue, kv, func() float64 {
				if i++; slices.Contains(last, i/row) {
					return math.Inf(1 - int(i%2)*2)
				}
				return plain.values[InValue][i]
			}, d.Shape.Dims()...)
			got := hidden.attend(t)
			size := len(got) / int(s.tokens)
			// The sequence has positions 522 to 530; those up to 527 see no infinity.
			require.True(t, bytes.Equal(want[:8*size], got[:8*size]), "%s, %d heads", kv, heads)
			require.False(t, bytes.Equal(want[8*size:11*size], got[8*size:11*size]), "%s, %d heads", kv, heads)
			require.True(t, bytes.Equal(want[11*size:], got[11*size:]), "%s, %d heads", kv, heads)
			require.True(t, bytes.Equal(got, hidden.split(t)), "%s, %d heads", kv, heads)
		}
	}
}
