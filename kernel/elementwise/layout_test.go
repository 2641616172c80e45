package elementwise

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
	"goatb/tensor"
)

func TestBroadcast(t *testing.T) {
	for _, c := range []struct{ a, b, want []int64 }{
		{[]int64{2, 3}, []int64{2, 3}, []int64{2, 3}},
		{[]int64{2, 3}, []int64{3}, []int64{2, 3}},
		{[]int64{2, 1}, []int64{4}, []int64{2, 4}},
		{[]int64{1}, []int64{2, 1, 5}, []int64{2, 1, 5}},
		{[]int64{64, 1}, []int64{1, 404}, []int64{64, 404}},
		{[]int64{1, 2, 3}, []int64{5, 5}, nil},
		{[]int64{4, 3}, []int64{2, 3}, nil},
	} {
		for range 2 {
			got, err := Broadcast(tensor.ShapeOf(c.a...), tensor.ShapeOf(c.b...))
			if c.want == nil {
				assert.ErrorIs(t, err, status.ErrInvalidTensorDim, "%v %v", c.a, c.b)
			} else {
				require.NoError(t, err)
				assert.Equal(t, c.want, got.Dims())
			}
			c.a, c.b = c.b, c.a
		}
	}
	assert.NoError(t, BroadcastsTo(tensor.ShapeOf(3), tensor.ShapeOf(2, 3)))
	assert.Error(t, BroadcastsTo(tensor.ShapeOf(2, 3), tensor.ShapeOf(3)))
	assert.Error(t, BroadcastsTo(tensor.ShapeOf(2, 2, 3), tensor.ShapeOf(1, 2, 3)))
}

func TestLayoutJoinsDimensions(t *testing.T) {
	var l layout
	l.set(tensor.ShapeOf(2, 1, 3, 4), tensor.ShapeOf(2, 1, 3, 4), tensor.ShapeOf(2, 1, 3, 4))
	assert.Equal(t, int64(1), l.Rank)
	assert.Equal(t, [2]walk{dense, dense}, [2]walk(l.Walks[:2]))

	l = layout{}
	l.set(tensor.ShapeOf(5, 6, 7, 8), tensor.ShapeOf(5, 6, 7, 8), tensor.ShapeOf(7, 8))
	assert.Equal(t, []int64{30, 56}, l.Dims[:l.Rank])
	assert.Equal(t, []int64{0, 1}, l.Strides[1][:l.Rank])

	l = layout{}
	l.set(tensor.ShapeOf(1, 1), tensor.ShapeOf(1), tensor.ShapeOf(1, 1))
	assert.Equal(t, int64(1), l.Rank)
}

// element is the operand's element for output i, by the definition.
func element(out, in tensor.Shape, i int64) int64 {
	at, scale := int64(0), int64(1)
	for d := 1; d <= out.Rank(); d++ {
		x := i % out.Dim(-d)
		i /= out.Dim(-d)
		if d <= in.Rank() {
			if in.Dim(-d) != 1 {
				at += x * scale
			}
			scale *= in.Dim(-d)
		}
	}
	return at
}

// broadcastCases are an output with two operands that broadcast to it.
var broadcastCases = []struct{ out, a, b []int64 }{
	{[]int64{1}, []int64{1}, []int64{1}},
	{[]int64{7, 300}, []int64{7, 300}, []int64{300}},
	{[]int64{7, 300}, []int64{7, 300}, []int64{7, 1}},
	{[]int64{7, 300}, []int64{1}, []int64{7, 300}},
	{[]int64{600, 2}, []int64{600, 2}, []int64{600, 1}},
	{[]int64{64, 40}, []int64{64, 1}, []int64{1, 40}},
	{[]int64{3, 2100}, []int64{3, 1}, []int64{2100}},
	{[]int64{2, 3, 4, 5, 6}, []int64{3, 1, 5, 1}, []int64{2, 1, 4, 1, 6}},
	{[]int64{2, 1, 2, 3, 1, 2, 3, 4}, []int64{2, 1, 1, 3, 1, 1, 3, 1}, []int64{2, 3, 1, 2, 1, 4}},
}

func TestFetchFollowsTheDefinition(t *testing.T) {
	for _, c := range broadcastCases {
		out, a, b := tensor.ShapeOf(c.out...), tensor.ShapeOf(c.a...), tensor.ShapeOf(c.b...)
		var l layout
		l.set(out, a, b)
		for i, s := range []tensor.Shape{a, b} {
			mem := make([]int32, s.Numel())
			for j := range mem {
				mem[j] = int32(j)
			}
			buf := make([]int32, out.Numel())
			for _, w := range [][2]int64{{0, out.Numel()}, {out.Numel() / 3, out.Numel() / 2}, {out.Numel() - 1, 1}} {
				lo, n := w[0], min(w[1], out.Numel()-w[0])
				got := fetch(&l, i, buf, mem, lo, n)
				require.Len(t, got, int(n))
				for j, v := range got {
					require.Equal(t, element(out, s, lo+int64(j)), int64(v), "%v of %v, operand %d, element %d", s, out, i, lo+int64(j))
				}
			}
		}
	}
}
