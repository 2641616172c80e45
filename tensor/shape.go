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
// A dimension that the shape does not have, or of a nil shape, is 0, which every
// check of sizes refuses.
func (s *Shape) Dim(i int) int64 {
	if s == nil {
		return 0
	}
	if i < 0 {
		i += int(s.rank)
	}
	if dims := s.known(); uint(i) < uint(len(dims)) {
		return dims[i]
	}
	return 0
}

// Dims returns a copy of the dimensions.
func (s Shape) Dims() []int64 {
	return append([]int64(nil), s.known()...)
}

// With returns s with dimension i (negative from the end) set to v. Without such a
// dimension the result is a shape of rank 0, which every check refuses.
func (s Shape) With(i int, v int64) Shape {
	if i < 0 {
		i += int(s.rank)
	}
	if dims := s.known(); uint(i) < uint(len(dims)) {
		dims[i] = v
		return s
	}
	return Shape{}
}

// Append returns s with more dimensions at the end.
func (s Shape) Append(dims ...int64) Shape {
	return ShapeOf(append(s.Dims(), dims...)...)
}

// Slice returns the dimensions [from, to) as a shape: one of rank 0, which every
// check refuses, when s does not have them.
func (s Shape) Slice(from, to int) Shape {
	dims := s.known()
	if from < 0 || from > to || to > len(dims) {
		return Shape{}
	}
	return ShapeOf(dims[from:to]...)
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

// Product multiplies the dimensions [from, to); an empty range gives 1, one that
// the shape does not have 0. The shape must have passed the checks of CheckDesc,
// so that the product fits.
func (s *Shape) Product(from, to int) int64 {
	if s == nil || from < 0 || from > to || to > len(s.known()) {
		return 0
	}
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
