package tensor

import (
	"math"
	"slices"

	"goatb/status"
)

// MaxBytes is the largest byte size of a tensor, inclusive: 256 GiB.
const MaxBytes int64 = 256 << 30

// Desc describes a tensor: element type, layout and shape. It is a comparable
// value. An empty Desc (rank 0, or some dimension 0) stands for an absent
// optional tensor, and so does a nil *Desc.
type Desc struct {
	DType  DType
	Format Format
	Shape  Shape
}

// Of makes a row-major descriptor.
func Of(t DType, dims ...int64) Desc { return Desc{DType: t, Shape: ShapeOf(dims...)} }

// Rank is the rank of the shape.
func (d *Desc) Rank() int {
	if d == nil {
		return 0
	}
	return int(d.Shape.rank)
}

// Dim is dimension i of the shape, negative from the end.
func (d *Desc) Dim(i int) int64 {
	if d == nil {
		return 0
	}
	return d.Shape.Dim(i)
}

// Numel is the number of elements, see Shape.Numel.
func (d *Desc) Numel() int64 {
	if d == nil {
		return 0
	}
	return d.Shape.Numel()
}

// Bytes returns the byte size, 0 when the descriptor has no size: an unknown
// type, a bad shape, or a product that leaves int64. It is that of the elements,
// except in layout Panels.
func (d *Desc) Bytes() int64 {
	if d == nil {
		return 0
	}
	if d.Format == Panels {
		return d.panelsBytes()
	}
	n, size := d.Shape.Numel(), d.DType.Size()
	if size == 0 || n > math.MaxInt64/size {
		return 0
	}
	return n * size
}

// Empty reports whether the descriptor stands for an absent tensor: rank 0 or
// some dimension 0.
func (d *Desc) Empty() bool {
	if d == nil || d.Shape.rank == 0 {
		return true
	}
	return slices.Contains(d.Shape.known(), 0)
}

// Same reports whether two descriptors are equal, as == does. It looks at no more
// dimensions than there are: launches ask for every operand.
func (d *Desc) Same(o *Desc) bool {
	if d == nil || o == nil {
		return d == o
	}
	if d.DType != o.DType || d.Format != o.Format || d.Shape.rank != o.Shape.rank {
		return false
	}
	dims := o.Shape.known()
	for i, n := range d.Shape.known() {
		if n != dims[i] {
			return false
		}
	}
	return true
}

// WithShape returns d with other dimensions.
func (d Desc) WithShape(dims ...int64) Desc {
	d.Shape = ShapeOf(dims...)
	return d
}

// String gives "f16[2,3]" or "int8@fractal_nz[1,2,16,32]".
func (d Desc) String() string {
	if d.Format == ND {
		return d.DType.String() + d.Shape.String()
	}
	return d.DType.String() + "@" + d.Format.String() + d.Shape.String()
}

// CheckDesc returns the error of a descriptor that no tensor can have: nil, rank
// outside 1..8 (ErrInvalidTensorDim), a dimension below 1, an unknown type, or
// a size above MaxBytes (ErrInvalidTensorSize).
func CheckDesc(d *Desc) *status.OpError {
	if r := d.Rank(); r < 1 || r > MaxRank {
		return status.Errorf(status.ErrInvalidTensorDim, "want rank 1 to %d, got %d", MaxRank, r)
	}
	if d.DType.Size() == 0 {
		return status.Errorf(status.ErrInvalidTensorSize, "dtype %s has no size", d.DType)
	}
	n := d.Bytes()
	if n == 0 {
		return status.Errorf(status.ErrInvalidTensorSize, "want every dimension at least 1 and a size within int64, got %s", d)
	}
	if n > MaxBytes {
		return status.Errorf(status.ErrInvalidTensorSize, "want at most %d bytes, got %d for %s", MaxBytes, n, d)
	}
	return nil
}
