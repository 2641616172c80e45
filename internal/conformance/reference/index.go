package reference

import "goatb/tensor"

// strides returns the row-major strides of a shape.
func strides(s tensor.Shape) []int64 {
	st := make([]int64, s.Rank())
	n := int64(1)
	for i := len(st) - 1; i >= 0; i-- {
		st[i] = n
		n *= s.Dim(i)
	}
	return st
}

// each calls f with every position of a shape and its row-major index.
func each(s tensor.Shape, f func(i int64, pos []int64)) {
	pos := make([]int64, s.Rank())
	for i := range s.Numel() {
		f(i, pos)
		for k := len(pos) - 1; k >= 0; k-- {
			if pos[k]++; pos[k] < s.Dim(k) {
				break
			}
			pos[k] = 0
		}
	}
}

// at returns the index of a position.
func at(stride, pos []int64) int64 {
	i := int64(0)
	for k, p := range pos {
		i += p * stride[k]
	}
	return i
}

// broadcast returns, for every element of a result of shape out, the index of
// the element of a right-aligned operand of shape in, whose dimensions are
// out's or 1.
func broadcast(in, out tensor.Shape) []int64 {
	st := strides(in)
	lead := out.Rank() - in.Rank()
	for k := range st {
		if in.Dim(k) == 1 {
			st[k] = 0
		}
	}
	idx := make([]int64, out.Numel())
	each(out, func(i int64, pos []int64) { idx[i] = at(st, pos[lead:]) })
	return idx
}

// move makes an output of type and shape d whose element i is element from[i]
// of src; a negative entry leaves zero.
func move(d tensor.Desc, src *Tensor, from []int64) Tensor {
	out := Zeros(d)
	size := d.DType.Size()
	for i, f := range from {
		if f >= 0 {
			copy(out.Data[int64(i)*size:int64(i+1)*size], src.Data[f*size:(f+1)*size])
		}
	}
	return out
}
