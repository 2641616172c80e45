package image

import (
	"encoding/binary"

	"goatb/status"
	"goatb/tensor"
)

// Sizes and offsets of a tensor in a context, in bytes.
const (
	// ShapeBytes holds the rank, 25 dimensions and 40 reserved bytes.
	ShapeBytes = 248
	// StorageShapeBytes holds two shapes, as seen and as stored, and 40 reserved.
	StorageShapeBytes = 536
	// StorageFormatBytes holds the layouts.
	StorageFormatBytes = 96
	// TensorDataAt is where address and size of the data lie, in TensorDataBytes.
	TensorDataAt    = 640
	TensorDataBytes = 72
	// TensorBytes is a whole tensor.
	TensorBytes = 752

	formatAt = StorageShapeBytes
	dtypeAt  = StorageShapeBytes + StorageFormatBytes
	maxDims  = 25
)

var le = binary.LittleEndian

// putTensor writes a tensor with data of `size` bytes at `data`; 0 makes it one
// that has a shape and no data.
func putTensor(dst []byte, d *tensor.Desc, data Address, size int64) {
	clear(dst[:TensorBytes])
	putShape(dst, &d.Shape)
	putShape(dst[ShapeBytes:], &d.Shape)
	le.PutUint32(dst[formatAt:], uint32(d.Format))
	le.PutUint32(dst[formatAt+4:], uint32(d.Format))
	le.PutUint32(dst[dtypeAt:], uint32(d.DType))
	le.PutUint64(dst[TensorDataAt:], uint64(data))
	if data != 0 {
		le.PutUint64(dst[TensorDataAt+8:], uint64(size))
	}
}

func putShape(dst []byte, s *tensor.Shape) {
	le.PutUint64(dst, uint64(s.Rank()))
	for i := range min(s.Rank(), maxDims) {
		le.PutUint64(dst[8+8*i:], uint64(s.Dim(i)))
	}
}

// getTensor reads a tensor back.
func getTensor(src []byte) (d tensor.Desc, data Address, err error) {
	rank := le.Uint64(src)
	if rank > tensor.MaxRank {
		return d, 0, status.Errorf(status.ErrInternal, "tensor in a tiling context: want a rank of at most %d, got %d", tensor.MaxRank, rank)
	}
	var dims [tensor.MaxRank]int64
	for i := range dims[:rank] {
		dims[i] = int64(le.Uint64(src[8+8*i:]))
	}
	d = tensor.Desc{
		DType:  tensor.DType(le.Uint32(src[dtypeAt:])),
		Format: tensor.Format(le.Uint32(src[formatAt:])),
		Shape:  tensor.ShapeOf(dims[:rank]...),
	}
	return d, Address(le.Uint64(src[TensorDataAt:])), nil
}
