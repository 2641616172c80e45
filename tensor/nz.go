package tensor

import "goatb/status"

// NZBlock returns the columns of one block of the FractalNZ layout: 32 for
// one-byte elements, 16 for all others.
func NZBlock(t DType) int64 {
	if t.Size() == 1 {
		return 32
	}
	return 16
}

// nzRows is the multiple that FractalNZ rounds the rows up to.
const nzRows = 16

// NZShape returns the stored shape [b, ceil(n/c), roundup(m, 16), c] of the
// FractalNZ layout of a matrix [m, n] (b is 1) or [b, m, n], c being NZBlock of
// the type. Errors: ErrInvalidTensorDim for another rank, those of CheckDesc,
// and ErrInvalidTensorSize when the padded tensor is above MaxBytes.
func NZShape(d Desc) (Shape, error) {
	if err := CheckDesc(&d); err != nil {
		return Shape{}, err
	}
	if r := d.Rank(); r != 2 && r != 3 {
		return Shape{}, status.Errorf(status.ErrInvalidTensorDim, "want rank 2 or 3 for a matrix in layout %s, got %s", FractalNZ, d)
	}
	batch, m, n, c := int64(1), d.Dim(-2), d.Dim(-1), NZBlock(d.DType)
	if d.Rank() == 3 {
		batch = d.Dim(0)
	}
	stored := Of(d.DType, batch, (n+c-1)/c, (m+nzRows-1)/nzRows*nzRows, c)
	if err := CheckDesc(&stored); err != nil {
		return Shape{}, err
	}
	return stored.Shape, nil
}

// PackNZ writes the row-major matrices src [batch, m, n] to dst in the layout
// FractalNZ: element (i, j) goes to [j/c][i][j%c] of its matrix and all padding
// is zero. dst has the size of NZShape's result and does not overlap src.
// Errors: those of NZShape, and ErrInvalidTensorSize for other lengths.
func PackNZ(dst, src []byte, batch, m, n int64, elem DType) error {
	l, err := newNZLayout(len(src), len(dst), batch, m, n, elem)
	if err != nil {
		return err
	}
	l.each(func(flat, stored, width int) {
		copy(dst[stored:], src[flat:flat+width])
		clear(dst[stored+width : stored+l.block])
	})
	return nil
}

// UnpackNZ writes the matrices stored in src in the layout FractalNZ to dst
// [batch, m, n], row-major, and leaves the padding out. m and n are the rows
// and columns without padding; src has the size of NZShape's result and does
// not overlap dst. Errors: as PackNZ.
func UnpackNZ(dst, src []byte, batch, m, n int64, elem DType) error {
	l, err := newNZLayout(len(dst), len(src), batch, m, n, elem)
	if err != nil {
		return err
	}
	l.each(func(flat, stored, width int) {
		copy(dst[flat:flat+width], src[stored:])
	})
	return nil
}

// nzLayout measures both forms in bytes.
type nzLayout struct {
	batch, rows, padded int
	row, block          int // bytes of a matrix row and of one row of a block
}

func newNZLayout(flat, stored int, batch, m, n int64, elem DType) (nzLayout, error) {
	d := Of(elem, batch, m, n)
	shape, err := NZShape(d)
	if err != nil {
		return nzLayout{}, err
	}
	nz := Desc{DType: elem, Shape: shape}
	if want := d.Bytes(); int64(flat) != want {
		return nzLayout{}, status.Errorf(status.ErrInvalidTensorSize, "want %d bytes for %s, got %d", want, d, flat)
	}
	if want := nz.Bytes(); int64(stored) != want {
		return nzLayout{}, status.Errorf(status.ErrInvalidTensorSize, "want %d bytes for %s in layout %s, got %d", want, d, FractalNZ, stored)
	}
	size := elem.Size()
	return nzLayout{
		batch: int(batch), rows: int(m), padded: int(shape.Dim(2)),
		row: int(n * size), block: int(NZBlock(elem) * size),
	}, nil
}

// each walks the stored form in order, one row of a block at a time: the row
// lies at stored and holds the width bytes at flat of the row-major form. The
// width is less than a block at the right edge and 0 in a padding row.
func (l *nzLayout) each(visit func(flat, stored, width int)) {
	stored := 0
	for b := range l.batch {
		for col := 0; col < l.row; col += l.block {
			width := min(l.block, l.row-col)
			for m := range l.padded {
				if m < l.rows {
					visit((b*l.rows+m)*l.row+col, stored, width)
				} else {
					visit(0, stored, 0)
				}
				stored += l.block
			}
		}
	}
}
