package tensor

import (
	"math"
	"strconv"
)

// MaxRank is the largest rank of a tensor.
const MaxRank = 8

// Shape is a list of dimensions. It is a comparable value: two shapes are equal
// when == says so. A shape made from more than MaxRank dimensions remembers
// only that it has too many; every check refuses it.
type Shape struct {
	rank int8
	dims [MaxRank]int64
}

// ShapeOf makes a shape.
func ShapeOf(dims ...int64) Shape {
	var s Shape
	s.rank = int8(min(len(dims), math.MaxInt8))
	copy(s.dims[:], dims)
	return s
}

// known returns the dimensions that the shape remembers.
func (s *Shape) known() []int64 { return s.dims[:min(int(s.rank), MaxRank)] }

// Rank returns the number of dimensions.
func (s Shape) Rank() int { return int(s.rank) }

// Dim returns dimension i; a negative i counts from the end, -1 being the last.
// It panics when i is out of range, as a slice index does.
func (s *Shape) Dim(i int) int64 {
	if i < 0 {
		i += int(s.rank)
	}
	return s.known()[i]
}

// Dims returns a copy of the dimensions.
func (s Shape) Dims() []int64 {
	return append([]int64(nil), s.known()...)
}

// With returns s with dimension i (negative from the end) set to v. It panics
// when i is out of range.
func (s Shape) With(i int, v int64) Shape {
	if i < 0 {
		i += int(s.rank)
	}
	s.known()[i] = v
	return s
}

// Append returns s with more dimensions at the end.
func (s Shape) Append(dims ...int64) Shape {
	return ShapeOf(append(s.Dims(), dims...)...)
}

// Slice returns the dimensions [from, to) as a shape.
func (s Shape) Slice(from, to int) Shape {
	return ShapeOf(s.known()[from:to]...)
}

// Numel returns the number of elements: 0 for rank 0, for a rank above MaxRank,
// for any dimension below 1 and when the product leaves int64.
func (s Shape) Numel() int64 {
	if s.rank == 0 || s.rank > MaxRank {
		return 0
	}
	n := int64(1)
	for _, d := range s.known() {
		if d <= 0 || n > math.MaxInt64/d {
			return 0
		}
		n *= d
	}
	return n
}

// Product multiplies the dimensions [from, to); an empty range gives 1. The
// shape must have passed the checks of CheckDesc, so that the product fits.
func (s *Shape) Product(from, to int) int64 {
	n := int64(1)
	for _, d := range s.known()[from:to] {
		n *= d
	}
	return n
}

// String gives "[2,3,4]".
func (s Shape) String() string {
	b := []byte{'['}
	for i, d := range s.known() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	if s.rank > MaxRank {
		b = append(b, ",..."...)
	}
	return string(append(b, ']'))
}
