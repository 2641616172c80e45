package reference

import (
	"math"

	"goatb/tensor"
)

// shaped gives an output the inferred shape and the type of its input.
func shaped(x *Tensor, dims []int64) tensor.Desc { return x.Desc.WithShape(dims...) }

func transpose(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ Perm []int64 }{})
	x := &c.In[0]
	dims := make([]int64, len(p.Perm))
	st := make([]int64, len(p.Perm))
	in := strides(x.Desc.Shape)
	for j, axis := range p.Perm {
		dims[j], st[j] = x.Desc.Dim(int(axis)), in[axis]
	}
	d := shaped(x, dims)
	from := make([]int64, d.Numel())
	each(d.Shape, func(i int64, pos []int64) { from[i] = at(st, pos) })
	return []Tensor{move(d, x, from)}, err
}

func concat(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ ConcatDim int }{})
	a, b := &c.In[0], &c.In[1]
	axis := (p.ConcatDim + a.Desc.Rank()) % a.Desc.Rank()
	cut := a.Desc.Dim(axis)
	d := a.Desc
	d.Shape = d.Shape.With(axis, cut+b.Desc.Dim(axis))
	out := Zeros(d)
	size, sa, sb := d.DType.Size(), strides(a.Desc.Shape), strides(b.Desc.Shape)
	each(d.Shape, func(i int64, pos []int64) {
		src, from := a, int64(0)
		if k := pos[axis]; k < cut {
			from = at(sa, pos)
		} else {
			src, pos[axis] = b, k-cut
			from = at(sb, pos)
			pos[axis] = k
		}
		copy(out.Data[i*size:(i+1)*size], src.Data[from*size:(from+1)*size])
	})
	return []Tensor{out}, err
}

func split(c *Input) ([]Tensor, error) {
	p, err := params(c, struct {
		SplitDim, SplitNum int
		SplitSizes         []int64
	}{SplitNum: 2})
	x := &c.In[0]
	axis := (p.SplitDim + x.Desc.Rank()) % x.Desc.Rank()
	sizes := p.SplitSizes
	for len(sizes) < p.SplitNum {
		sizes = append(sizes, x.Desc.Dim(axis)/int64(p.SplitNum))
	}
	var out []Tensor
	begin := make([]int64, x.Desc.Rank())
	for _, n := range sizes {
		out = append(out, window(x, begin, x.Desc.Shape.With(axis, n)))
		begin[axis] += n
	}
	return out, err
}

func slice(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ Offsets, Size []int64 }{})
	x := &c.In[0]
	size := x.Desc.Shape
	for k, dim := range x.Desc.Shape.Dims() {
		if p.Offsets[k] < 0 {
			p.Offsets[k] += dim
		}
		if p.Size[k] == -1 {
			p.Size[k] = dim - p.Offsets[k]
		}
		size = size.With(k, p.Size[k])
	}
	return []Tensor{window(x, p.Offsets, size)}, err
}

// window copies the box of the given size that starts at begin.
func window(x *Tensor, begin []int64, size tensor.Shape) Tensor {
	d := x.Desc
	d.Shape = size
	st := strides(x.Desc.Shape)
	first := at(st, begin)
	from := make([]int64, d.Numel())
	each(size, func(i int64, pos []int64) { from[i] = first + at(st, pos) })
	return move(d, x, from)
}

// gather gives zero where an index lies outside its axis.
func gather(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ Axis, BatchDims int }{})
	x, idx := &c.In[0], &c.In[1]
	b, a := p.BatchDims, p.Axis
	extra := idx.Desc.Rank() - b
	dims := append([]int64{}, x.Desc.Shape.Dims()[:a]...)
	dims = append(dims, idx.Desc.Shape.Dims()[b:]...)
	dims = append(dims, x.Desc.Shape.Dims()[a+1:]...)
	d := shaped(x, dims)
	picks, sx, si := idx.Ints(), strides(x.Desc.Shape), strides(idx.Desc.Shape)
	from := make([]int64, d.Numel())
	each(d.Shape, func(i int64, pos []int64) {
		pick := picks[at(si[:b], pos[:b])+at(si[b:], pos[a:a+extra])]
		from[i] = -1
		if pick >= 0 && pick < x.Desc.Dim(a) {
			from[i] = at(sx[:a], pos[:a]) + pick*sx[a] + at(sx[a+1:], pos[a+extra:])
		}
	})
	return []Tensor{move(d, x, from)}, err
}

func softmax(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ Axes []int }{})
	x := &c.In[0]
	rank := x.Desc.Rank()
	first, last := (p.Axes[0]+rank)%rank, (p.Axes[len(p.Axes)-1]+rank)%rank
	outer, inner := x.Desc.Shape.Product(0, first), x.Desc.Shape.Product(last+1, rank)
	length := x.Desc.Shape.Product(first, last+1)
	v := x.Floats()
	row := make([]float64, length)
	for o := range outer {
		for i := range inner {
			begin := o*length*inner + i
			for k := range row {
				row[k] = v[begin+int64(k)*inner]
			}
			softmaxRow(row)
			for k := range row {
				v[begin+int64(k)*inner] = row[k]
			}
		}
	}
	return []Tensor{OfFloats(x.Desc, v)}, err
}

// softmaxRow replaces scores by probabilities; a row of nothing but -Inf gives
// zeros.
func softmaxRow(v []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, x := range v {
		top = max(top, x)
	}
	if math.IsInf(top, -1) {
		clear(v)
		return
	}
	for i, x := range v {
		v[i] = math.Exp(x - top)
		sum += v[i]
	}
	for i := range v {
		v[i] /= sum
	}
}
