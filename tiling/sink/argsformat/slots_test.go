package argsformat

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestSlots(t *testing.T) {
	// Input 1 is dynamic with 3 tensors, input 2 absent.
	c := Counts{In: []int{1, 3, 0}, Out: []int{2}}
	subs := func(id int64) (Counts, bool) { return Counts{In: []int{5}}, id == 4 }
	for text, want := range map[string][]int64{
		"":                              nil,
		"{i0}{i0*}{i1}{i1*}{i2*}{i*}":   {8, 8, 8, 24, 0, 32},
		"{o0}{o0*}{o*}":                 {8, 16, 16},
		"{i_desc1}{i_desc1*}{o_desc0*}": {8, 8, 8},
		"{i_instance3}{i_instance*}{o_instance1}": {8, 32, 8},
		"{ws0}{ws3*}{ws*}":                        {8, 8, 128},
		"{}{.32b}{#5}{#.32b5}":                    {8, 4, 8, 4},
		"{tiling_context}{tiling_context.block_dim}{event_addr0*}{*op_type}{ffts_addr}{hi.hcom0*}{t}{t_ffts.tail}": {8, 8, 8, 8, 8, 8, 8, 8},
		"{skn4i0*}{skn4.32b}{skn4ws*}": {40, 4, 128},
	} {
		f, err := Parse(text)
		require.NoError(t, err, text)
		slots, err := f.Slots(c, subs)
		require.NoError(t, err, text)
		require.Len(t, slots, len(want), text)
		at := int64(0)
		for i, s := range slots {
			assert.Equal(t, Slot{f[i], at, want[i]}, s, "%s item %d", text, i)
			at += want[i]
		}
	}
}

func TestSlotErrors(t *testing.T) {
	c := Counts{In: []int{1}, Out: []int{1}}
	for text, want := range map[string]string{
		"{i1}":          `item "i1": the operation has 1 inputs`,
		"{o1*}":         `item "o1*": the operation has 1 outputs`,
		"{i_desc2}":     `item "i_desc2": the operation has 1 inputs`,
		"{i_instance1}": `item "i_instance1": the operation has 1 input instances`,
		"{o_instance9}": `item "o_instance9": the operation has 1 output instances`,
		"{skn2i0}":      `item "skn2i0": no sub node 2`,
	} {
		f, err := Parse(text)
		require.NoError(t, err, text)
		_, err = f.Slots(c, nil)
		require.ErrorIs(t, err, status.ErrInvalidParam, text)
		assert.ErrorContains(t, err, want)
	}
	f, err := Parse("{i*}{o0}")
	require.NoError(t, err)
	_, err = f.Slots(Counts{In: []int{math.MaxUint32 / 8, 1}, Out: []int{1}}, nil)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, `item 0 "i*": the buffer exceeds 4 GiB`)
}

func TestFindingItems(t *testing.T) {
	f, err := Parse("{i0}{ws0}{skn3ws1}{ws2*}{o0}")
	require.NoError(t, err)
	assert.Equal(t, 3, f.Last(Workspace))
	assert.Equal(t, 2, f.Last(SuperKernelSubNode))
	assert.Equal(t, -1, f.Last(Tiling))
	assert.Equal(t, "{skn5i0}{skn5o0}", Format{f[0], f[4]}.In(5).String())
	assert.Equal(t, "{tiling_context}{event_addr3*}{ws2*}", Format{Context(WholeContext), Event(3), LogWorkspace(2)}.String())
}
