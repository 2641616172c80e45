package tensor

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestNZShape(t *testing.T) {
	for _, tt := range []struct {
		d    Desc
		want Shape
	}{
		{Of(Float16, 16, 16), ShapeOf(1, 1, 16, 16)},
		{Of(Float16, 1, 1), ShapeOf(1, 1, 16, 16)},
		{Of(Float16, 17, 33), ShapeOf(1, 3, 32, 16)},
		{Of(BFloat16, 5, 16, 48), ShapeOf(5, 3, 16, 16)},
		{Of(Int8, 17, 33), ShapeOf(1, 2, 32, 32)},
		{Of(Int8, 2, 32, 64), ShapeOf(2, 2, 32, 32)},
		{Of(Bool, 16, 32), ShapeOf(1, 1, 16, 32)},
		{Of(Float32, 16, 32), ShapeOf(1, 2, 16, 16)},
		{Of(Int64, 16, 32), ShapeOf(1, 2, 16, 16)},
	} {
		got, err := NZShape(tt.d)
		require.NoError(t, err, tt.d)
		assert.Equal(t, tt.want, got, tt.d)
	}
}

func TestNZShapeErrors(t *testing.T) {
	for _, tt := range []struct {
		d    Desc
		want status.Code
	}{
		{Of(Float16, 16), status.ErrInvalidTensorDim},
		{Of(Float16, 1, 1, 16, 16), status.ErrInvalidTensorDim},
		{Of(Float16), status.ErrInvalidTensorDim},
		{Of(Float16, 0, 16), status.ErrInvalidTensorSize},
		{Of(Float16, -16, 16), status.ErrInvalidTensorSize},
		{Of(Undefined, 16, 16), status.ErrInvalidTensorSize},
		{Of(Float16, math.MaxInt64, 1), status.ErrInvalidTensorSize},
		{Of(Int8, MaxBytes, 1), status.ErrInvalidTensorSize},
	} {
		_, err := NZShape(tt.d)
		assert.ErrorIs(t, err, tt.want, tt.d)
	}
}

// TestPackNZByHand writes a [2, 17] f16 matrix out in full: two blocks of 16
// columns, each 16 rows high.
func TestPackNZByHand(t *testing.T) {
	src := make([]float64, 2*17)
	want := make([]float64, 2*16*16)
	for col := range 17 {
		src[col], src[17+col] = float64(1+col), float64(101+col)
	}
	for col := range 16 {
		want[col], want[16+col] = float64(1+col), float64(101+col)
	}
	want[16*16], want[16*16+16] = 17, 117

	dst := dirty(2 * len(want))
	require.NoError(t, PackNZ(dst, FromFloat64s(Float16, src), 1, 2, 17, Float16))
	got, err := Float64s(dst, Float16)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// TestPackNZByFormula checks every stored element against the definition of the
// layout, and that UnpackNZ brings the matrices back.
func TestPackNZByFormula(t *testing.T) {
	for _, elem := range []DType{Int8, Float16, Float32, Int64, Complex128} {
		for _, dims := range [][3]int64{{1, 1, 1}, {1, 16, 16}, {1, 15, 17}, {2, 17, 31}, {3, 1, 32}, {2, 33, 33}, {1, 16, 100}} {
			t.Run(fmt.Sprint(elem, dims), func(t *testing.T) {
				checkNZ(t, elem, dims[0], dims[1], dims[2])
			})
		}
	}
}

func checkNZ(t *testing.T, elem DType, batch, m, n int64) {
	size, c := elem.Size(), NZBlock(elem)
	src := make([]byte, batch*m*n*size)
	for i := range src {
		src[i] = byte(1 + i%251)
	}
	shape, err := NZShape(Of(elem, batch, m, n))
	require.NoError(t, err)
	rows := shape.Dim(2)
	dst := dirty(shape.Numel() * size)
	require.NoError(t, PackNZ(dst, src, batch, m, n, elem))

	at := 0
	for b := range batch {
		for block := range shape.Dim(1) {
			for i := range rows {
				for j := range c {
					want := make([]byte, size)
					if col := block*c + j; i < m && col < n {
						want = src[((b*m+i)*n+col)*size:][:size]
					}
					require.Equal(t, want, dst[at:at+int(size)], "batch %d, block %d, row %d, column %d of it", b, block, i, j)
					at += int(size)
				}
			}
		}
	}
	require.Len(t, dst, at)

	back := dirty(int64(len(src)))
	require.NoError(t, UnpackNZ(back, dst, batch, m, n, elem))
	assert.Equal(t, src, back)
}

// dirty makes memory that holds no zero.
func dirty[N int | int64](n N) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 0xaa
	}
	return b
}

func TestNZErrors(t *testing.T) {
	const stored = 2 * 16 * 16 * 2
	for _, tt := range []struct {
		name         string
		flat, packed int
		batch, m, n  int64
		elem         DType
		want         status.Code
	}{
		{"short matrix", 2*17*2 - 1, stored, 1, 2, 17, Float16, status.ErrInvalidTensorSize},
		{"long matrix", 2*17*2 + 1, stored, 1, 2, 17, Float16, status.ErrInvalidTensorSize},
		{"rows not rounded up", 2 * 17 * 2, 2 * 2 * 16 * 2, 1, 2, 17, Float16, status.ErrInvalidTensorSize},
		{"long storage", 2 * 17 * 2, stored + 2, 1, 2, 17, Float16, status.ErrInvalidTensorSize},
		{"no batch", 0, 0, 0, 2, 17, Float16, status.ErrInvalidTensorSize},
		{"negative rows", 0, 0, 1, -2, 17, Float16, status.ErrInvalidTensorSize},
		{"sizes leave int64", 0, 0, math.MaxInt64, math.MaxInt64, 17, Float16, status.ErrInvalidTensorSize},
		{"no type", 0, 0, 1, 2, 17, Undefined, status.ErrInvalidTensorSize},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.ErrorIs(t, PackNZ(make([]byte, tt.packed), make([]byte, tt.flat), tt.batch, tt.m, tt.n, tt.elem), tt.want)
			assert.ErrorIs(t, UnpackNZ(make([]byte, tt.flat), make([]byte, tt.packed), tt.batch, tt.m, tt.n, tt.elem), tt.want)
		})
	}
}
