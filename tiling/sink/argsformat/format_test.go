package argsformat

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// The address types and the parts of a tiling context have the numbers of
// compiled models.
func TestNumbers(t *testing.T) {
	kinds := []Kind{
		Input, Output, Workspace, Tiling, InputDesc, OutputDesc, FFTSAddr, OverflowAddr, TilingFFTS, HiddenInput, TilingContext,
		OpType, Placeholder, CustomValue, InputInstance, OutputInstance, SuperKernelSubNode, EventAddr,
	}
	for i, k := range kinds {
		assert.Equal(t, Kind(i), k)
	}
	for i, p := range []Part{WholeContext, TilingData, TilingKey, BlockDim} {
		assert.Equal(t, Part(i-1), p)
	}
	assert.Equal(t, SuperKernelSubNode, Item{Kind: Input}.In(3).AddrType())
}

func TestItems(t *testing.T) {
	for text, want := range map[string]Item{
		"i0":                         {Kind: Input, Folded: true},
		"i12*":                       {Kind: Input, Index: 12},
		"i*":                         {Kind: Input, Index: All},
		"o0":                         {Kind: Output, Folded: true},
		"o3*":                        {Kind: Output, Index: 3},
		"o*":                         {Kind: Output, Index: All},
		"ws0":                        {Kind: Workspace, Folded: true},
		"ws7*":                       {Kind: Workspace, Index: 7},
		"ws*":                        {Kind: Workspace, Index: All},
		"t":                          {Kind: Tiling},
		"t_ffts.non_tail":            {Kind: TilingFFTS},
		"t_ffts.tail":                {Kind: TilingFFTS, Part: Tail},
		"i_desc1":                    {Kind: InputDesc, Index: 1, Folded: true},
		"o_desc2*":                   {Kind: OutputDesc, Index: 2},
		"i_instance0":                {Kind: InputInstance, Folded: true},
		"i_instance4*":               {Kind: InputInstance, Index: 4},
		"i_instance*":                {Kind: InputInstance, Index: All},
		"o_instance0":                {Kind: OutputInstance, Folded: true},
		"o_instance*":                {Kind: OutputInstance, Index: All},
		"ffts_addr":                  {Kind: FFTSAddr},
		"overflow_addr":              {Kind: OverflowAddr},
		"hi.hcom0*":                  {Kind: HiddenInput},
		"hi.tilefwk1*":               {Kind: HiddenInput, Part: TileFwk, Index: 1},
		"hi.hcclsk2*":                {Kind: HiddenInput, Part: HcclSK, Index: 2},
		"tiling_context":             {Kind: TilingContext, Part: WholeContext},
		"tiling_context.tiling_data": {Kind: TilingContext, Part: TilingData},
		"tiling_context.tiling_key":  {Kind: TilingContext, Part: TilingKey},
		"tiling_context.block_dim":   {Kind: TilingContext, Part: BlockDim},
		"*op_type":                   {Kind: OpType},
		"":                           {Kind: Placeholder},
		".32b":                       {Kind: Placeholder, Part: Bits32},
		"#0":                         {Kind: CustomValue},
		"#18446744073709551615":      {Kind: CustomValue, Value: math.MaxUint64},
		"#.32b4294967295":            {Kind: CustomValue, Part: Bits32, Value: math.MaxUint32},
		"event_addr9*":               {Kind: EventAddr, Index: 9},
		"skn3i0*":                    {Kind: Input, InSubNode: true, SubNode: 3},
		"skn0":                       {Kind: Placeholder, InSubNode: true},
		"skn12.32b":                  {Kind: Placeholder, Part: Bits32, InSubNode: true, SubNode: 12},
		"skn12#5":                    {Kind: CustomValue, Value: 5, InSubNode: true, SubNode: 12},
		"skn7*op_type":               {Kind: OpType, InSubNode: true, SubNode: 7},
		"skn9223372036854775807t":    {Kind: Tiling, InSubNode: true, SubNode: math.MaxInt64},
	} {
		f, err := Parse("{" + text + "}")
		require.NoError(t, err, text)
		assert.Equal(t, Format{want}, f, text)
		assert.Equal(t, text, want.String())
	}
}

// What the writer always appends may be missing in what the reader takes.
func TestStarsThatMayBeMissing(t *testing.T) {
	for text, want := range map[string]string{
		"{event_addr5}": "{event_addr5*}", "{hi.hcom0}": "{hi.hcom0*}", "{skn1event_addr5}": "{skn1event_addr5*}",
	} {
		f, err := Parse(text)
		require.NoError(t, err)
		assert.Equal(t, want, f.String())
	}
}

// The strings that task lists carry are read and written unchanged.
func TestWholeFormats(t *testing.T) {
	for _, text := range []string{
		"",
		"{tiling_context}{*op_type}{}",
		"{tiling_context}{*op_type}{}{ws2*}",
		"{tiling_context.tiling_key}{tiling_context.block_dim}",
		"{tiling_context}{*op_type}{event_addr7*}",
		"{i0}{i_desc1}{i_desc2}{i4}{o_desc0}{ws0}{}{tiling_context.tiling_data}",
		"{i0}{i_instance0}{i_desc1}{o0}{o_instance0}{ws0}{t_ffts.non_tail}",
		"{ffts_addr}{skn3i0*}{skn3tiling_context.tiling_data}{skn3event_addr1*}{ws0*}",
	} {
		f, err := Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, text, f.String())
		assert.Len(t, f, strings.Count(text, "{"))
	}
}

func TestErrorsNamePositionAndItem(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"i0", `position 0: want {, got "i0"`},
		{"{i0} {o0}", `position 4: want {, got " {o0}"`},
		{"{i0}}", `position 4: want {, got "}"`},
		{"{i0}{o0", `position 4: item "{o0": want } at its end`},
		{"{i0{o0}", `position 0: item "{i0{o0}": want } at its end`},
		{"{", `position 0: item "{": want } at its end`},
		{"{i}", `position 2: item "i": want an index, got the end`},
		{"{i0}{o}", `position 6: item "o": want an index, got the end`},
		{"{i01}", `position 2: item "i01": want an index without leading zeros, got "01"`},
		{"{i-1}", `position 2: item "i-1": want an index, got "-1"`},
		{"{i0**}", `position 4: item "i0**": want the end of the item, got "*"`},
		{"{i2147483648}", `position 2: item "i2147483648": want an index of at most 2147483647, got "2147483648"`},
		{"{i_desc*}", `position 7: item "i_desc*": want an index, got "*"`},
		{"{event_addr*}", `position 11: item "event_addr*": want an index, got "*"`},
		{"{x0}", `position 1: item "x0": want a known item, got "x0"`},
		{"{I0}", `position 1: item "I0": want a known item, got "I0"`},
		{"{ }", `position 1: item " ": want a known item, got " "`},
		{"{ i0}", `position 1: item " i0": want a known item`},
		{"{tiling}", `position 2: item "tiling": want the end of the item, got "iling"`},
		{"{tiling_context.}", `position 15: item "tiling_context.": want the end of the item, got "."`},
		{"{t_ffts}", `position 2: item "t_ffts": want the end of the item, got "_ffts"`},
		{"{op_type}", `position 2: item "op_type": want an index, got "p_type"`},
		{"{hi.other0*}", `position 1: item "hi.other0*": want a known item`},
		{"{#}", `position 2: item "#": want a number, got the end`},
		{"{#18446744073709551616}", `want a number of at most 18446744073709551615, got "18446744073709551616"`},
		{"{#.32b4294967296}", `want a number of at most 4294967295`},
		{"{.33b}", `position 1: item ".33b": want a known item`},
		{"{skn}", `position 4: item "skn": want the number of a sub node, got the end`},
		{"{sknx}", `position 4: item "sknx": want the number of a sub node, got "x"`},
		{"{skn9223372036854775808i0}", `want the number of a sub node of at most 9223372036854775807`},
		{"{skn1skn2i0}", `position 5: item "skn1skn2i0": want a known item, got "skn2i0"`},
		{"{" + strings.Repeat("z", 99) + "}", `item "` + strings.Repeat("z", 32) + `...": want a known item`},
	} {
		f, err := Parse(tt.text)
		require.ErrorIs(t, err, status.ErrInvalidParam, tt.text)
		assert.ErrorContains(t, err, tt.want, tt.text)
		assert.Nil(t, f)
	}
}

// No word hides a longer one behind it.
func TestLongestNameFirst(t *testing.T) {
	for i := range words {
		for j := range i {
			assert.False(t, strings.HasPrefix(words[i].name, words[j].name), "%q hides %q", words[j].name, words[i].name)
		}
	}
}

// randomItem makes any item that a format may hold.
func randomItem(r *rand.Rand) Item {
	w := words[r.IntN(len(words))]
	it := Item{Kind: w.kind, Part: w.part}
	switch w.shape {
	case valued:
		it.Value = r.Uint64() >> r.IntN(64)
		if w.part == Bits32 {
			it.Value &= math.MaxUint32
		}
	case starred:
		it.Index = r.Int32N(math.MaxInt32)
	case indexed, indexedOrAll:
		it.Index, it.Folded = r.Int32N(100), r.IntN(2) == 0
		if w.shape == indexedOrAll && r.IntN(3) == 0 {
			it.Index, it.Folded = All, false
		}
	}
	if r.IntN(4) == 0 {
		it = it.In(r.Int64N(1000))
	}
	return it
}

func TestRandomFormatsRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var f Format
		for range r.IntN(6) {
			f = append(f, randomItem(r))
		}
		back, err := Parse(f.String())
		require.NoError(t, err, f.String())
		require.Equal(t, f, back, f.String())
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "{}", "{i0}{o*}{ws1*}{t_ffts.tail}", "{skn3tiling_context.tiling_key}", "{#.32b7}{hi.hcom3}", "{i0", "{i00}", "}{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(text)
		if err != nil {
			require.ErrorIs(t, err, status.ErrInvalidParam)
			require.ErrorContains(t, err, "position ")
			return
		}
		back, err := Parse(got.String())
		require.NoError(t, err)
		require.Equal(t, got, back)
		require.Equal(t, got.String(), back.String())
	})
}
