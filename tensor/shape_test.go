package tensor

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumel(t *testing.T) {
	for _, tt := range []struct {
		name string
		dims []int64
		want int64
	}{
		{"rank 0", nil, 0},
		{"one", []int64{1}, 1},
		{"three dimensions", []int64{2, 3, 4}, 24},
		{"rank 8", []int64{1, 2, 1, 2, 1, 2, 1, 2}, 16},
		{"rank 9", []int64{1, 1, 1, 1, 1, 1, 1, 1, 1}, 0},
		{"dimension 0", []int64{2, 0, 4}, 0},
		{"negative dimension", []int64{-1}, 0},
		{"two negative dimensions", []int64{-2, -3}, 0},
		{"above int32", []int64{8388609, 8, 64}, 4294967808},
		{"largest", []int64{math.MaxInt64}, math.MaxInt64},
		{"largest, with ones", []int64{1, math.MaxInt64, 1}, math.MaxInt64},
		{"one too many", []int64{math.MaxInt64, 2}, 0},
		{"2^62", []int64{1 << 31, 1 << 31}, 1 << 62},
		{"2^63", []int64{1 << 31, 1 << 32}, 0},
		{"2^64 does not come back as 0 or more", []int64{1 << 32, 1 << 32}, 0},
		{"lowest", []int64{math.MinInt64, math.MinInt64}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, ShapeOf(tt.dims...).Numel())
		})
	}
}

func TestShapeAccess(t *testing.T) {
	s := ShapeOf(2, 3, 5)
	assert.Equal(t, 3, s.Rank())
	assert.Equal(t, []int64{2, 3, 5}, s.Dims())
	assert.Equal(t, []int64{2, 5, 5, 2}, []int64{s.Dim(0), s.Dim(2), s.Dim(-1), s.Dim(-3)})
	for _, i := range []int{3, -4, math.MaxInt, math.MinInt} {
		assert.Zero(t, s.Dim(i), "no dimension %d", i)
		assert.Zero(t, s.With(i, 7).Rank(), "no dimension %d", i)
	}
	for _, r := range [][2]int{{-1, 2}, {2, 1}, {0, 4}, {math.MinInt, math.MaxInt}} {
		assert.Zero(t, s.Product(r[0], r[1]), "%v", r)
		assert.Zero(t, s.Slice(r[0], r[1]).Rank(), "%v", r)
	}

	assert.Equal(t, []int64{30, 15, 3, 1}, []int64{s.Product(0, 3), s.Product(1, 3), s.Product(1, 2), s.Product(2, 2)})

	dims := s.Dims()
	dims[0] = 99
	assert.Equal(t, int64(2), s.Dim(0), "Dims is a copy")
}

func TestShapeIsAValue(t *testing.T) {
	s := ShapeOf(2, 3, 5)
	assert.True(t, s == ShapeOf(2, 3, 5))
	assert.False(t, s == ShapeOf(2, 3, 5, 1))
	assert.False(t, s == ShapeOf(2, 3))
	assert.True(t, s.Slice(0, 2) == ShapeOf(2, 3))
	assert.True(t, s.Slice(1, 1) == ShapeOf())
	assert.True(t, s.Append(7, 1) == ShapeOf(2, 3, 5, 7, 1))
	assert.True(t, s.With(0, 9) == ShapeOf(9, 3, 5))
	assert.True(t, s.With(-1, 9) == ShapeOf(2, 3, 9))
	assert.True(t, s == ShapeOf(2, 3, 5), "no method changes the shape")
}

func TestShapeOfTooManyDimensions(t *testing.T) {
	nine := ShapeOf(1, 2, 3, 4, 5, 6, 7, 8, 9)
	assert.Equal(t, 9, nine.Rank())
	assert.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7, 8}, nine.Dims())
	assert.Equal(t, "[1,2,3,4,5,6,7,8,...]", nine.String())
	assert.True(t, nine.Slice(0, 2) == ShapeOf(1, 2))
	assert.Equal(t, 9, nine.Append(1).Rank())

	many := ShapeOf(make([]int64, 1000)...)
	assert.Greater(t, many.Rank(), MaxRank)
	assert.Zero(t, many.Numel())
	assert.Greater(t, ShapeOf(1, 2, 3, 4, 5).Append(6, 7, 8, 9).Rank(), MaxRank)
}

func TestShapeString(t *testing.T) {
	assert.Equal(t, "[]", ShapeOf().String())
	assert.Equal(t, "[0]", ShapeOf(0).String())
	assert.Equal(t, "[-1,2,9223372036854775807]", ShapeOf(-1, 2, math.MaxInt64).String())
}
