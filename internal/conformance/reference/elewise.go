package reference

import (
	"fmt"
	"math"

	"goatb/tensor"
)

// elewiseParam holds the JSON parameters of ElewiseOperation.
type elewiseParam struct {
	ElewiseType   int
	OutTensorType tensor.DType
	MulsParam     struct{ VarAttr float32 }
	QuantParam    struct {
		InputScale  float32
		InputOffset int32
	}
}

// unary lists the functions of one float input by elewiseType.
var unary = map[int]func(x float64) float64{
	3: math.Cos, 4: math.Sin, 5: func(x float64) float64 { return -x }, 20: math.Tanh,
	7: func(x float64) float64 { return truth(x == 0) },
}

// binary lists the functions of two inputs.
var binary = map[int]func(a, b float64) float64{
	8:  func(a, b float64) float64 { return a + b },
	9:  func(a, b float64) float64 { return a * b },
	10: func(a, b float64) float64 { return a / b },
	11: func(a, b float64) float64 { return truth(a != 0 && b != 0) },
	12: func(a, b float64) float64 { return truth(a != 0 || b != 0) },
	13: func(a, b float64) float64 { return truth(a < b) },
	14: func(a, b float64) float64 { return truth(a > b) },
	15: func(a, b float64) float64 { return a - b },
	16: func(a, b float64) float64 { return truth(a == b) },
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func elewise(c *Input) ([]Tensor, error) {
	p := elewiseParam{}
	p.QuantParam.InputScale = 1
	p, err := params(c, p)
	if err != nil {
		return nil, err
	}
	x := &c.In[0]
	if f := unary[p.ElewiseType]; f != nil {
		return apply(x, f), nil
	}
	if f := binary[p.ElewiseType]; f != nil {
		return pairwise(c, p.ElewiseType, f), nil
	}
	switch p.ElewiseType {
	case 1:
		return cast(x, c.Out[0]), nil
	case 2:
		return apply(x, func(v float64) float64 { return v * float64(p.MulsParam.VarAttr) }), nil
	case 6:
		return apply(x, func(v float64) float64 {
			return quantise(v*float64(p.QuantParam.InputScale) + float64(p.QuantParam.InputOffset))
		}), nil
	case 17, 18:
		return perChannel(c, p.ElewiseType == 17), nil
	case 19:
		return dynamicQuant(x), nil
	}
	return nil, fmt.Errorf("elewiseType %d: %w", p.ElewiseType, ErrNone)
}

func apply(x *Tensor, f func(float64) float64) []Tensor {
	v := x.Floats()
	for i := range v {
		v[i] = f(v[i])
	}
	return []Tensor{OfFloats(x.Desc, v)}
}

// cast converts exactly, or rounds once to the output's float type.
func cast(x *Tensor, out tensor.Desc) []Tensor {
	if !x.Desc.DType.IsFloat() && !out.DType.IsFloat() {
		v := x.Ints()
		if out.DType == tensor.Int32 {
			for i := range v {
				v[i] = int64(int32(v[i]))
			}
		}
		return []Tensor{OfInts(x.Desc, v)}
	}
	return apply(x, func(v float64) float64 { return Round(out.DType, v) })
}

// shapeOf broadcasts two right-aligned shapes.
func shapeOf(a, b tensor.Shape) tensor.Shape {
	if a.Rank() < b.Rank() {
		a, b = b, a
	}
	for k := 1; k <= b.Rank(); k++ {
		a = a.With(-k, max(a.Dim(-k), b.Dim(-k)))
	}
	return a
}

func pairwise(c *Input, kind int, f func(a, b float64) float64) []Tensor {
	a, b := &c.In[0], &c.In[1]
	d := a.Desc
	d.Shape = shapeOf(a.Desc.Shape, b.Desc.Shape)
	ia, ib := broadcast(a.Desc.Shape, d.Shape), broadcast(b.Desc.Shape, d.Shape)
	if !a.Desc.DType.IsFloat() {
		return []Tensor{OfInts(d, integers(a.Ints(), b.Ints(), ia, ib, kind, f))}
	}
	va, vb := a.Floats(), b.Floats()
	out := make([]float64, len(ia))
	for i := range out {
		out[i] = f(va[ia[i]], vb[ib[i]])
	}
	return []Tensor{OfFloats(d, out)}
}

// integers computes in int64 what must not go through float64.
func integers(a, b, ia, ib []int64, kind int, f func(a, b float64) float64) []int64 {
	out := make([]int64, len(ia))
	for i := range out {
		x, y := a[ia[i]], b[ib[i]]
		switch kind {
		case 8:
			out[i] = x + y
		case 15:
			out[i] = x - y
		case 13:
			out[i] = int64(truth(x < y))
		case 14:
			out[i] = int64(truth(x > y))
		default:
			out[i] = int64(f(float64(x), float64(y)))
		}
	}
	return out
}

// perChannel quantises x/scale+offset or computes (x-offset)*scale, scale and
// offset being broadcast over the trailing axes.
func perChannel(c *Input, quant bool) []Tensor {
	x, scale := &c.In[0], c.In[1].Floats()
	v := x.Floats()
	is := broadcast(c.In[1].Desc.Shape, x.Desc.Shape)
	var offset []float64
	var io []int64
	if len(c.In) > 2 && !c.In[2].Desc.Empty() {
		offset, io = c.In[2].Floats(), broadcast(c.In[2].Desc.Shape, x.Desc.Shape)
	}
	for i := range v {
		o := 0.0
		if offset != nil {
			o = offset[io[i]]
		}
		if quant {
			v[i] = quantise(v[i]/scale[is[i]] + o)
		} else {
			v[i] = min(max((v[i]-o)*scale[is[i]], -65504), 65504)
		}
	}
	return []Tensor{OfFloats(x.Desc, v)}
}

// dynamicQuant scales every row so that its largest magnitude becomes 127.
func dynamicQuant(x *Tensor) []Tensor {
	v := x.Floats()
	scales := quantRows(v, x.Desc.Dim(-1))
	d := x.Desc
	d.Shape = d.Shape.Slice(0, d.Rank()-1)
	return []Tensor{OfFloats(x.Desc, v), OfFloats(d, scales)}
}

// quantRows quantises rows of n elements in place and returns their scales.
func quantRows(v []float64, n int64) []float64 {
	var scales []float64
	for at := int64(0); at < int64(len(v)); at += n {
		row := v[at : at+n]
		top := 0.0
		for _, x := range row {
			top = max(top, math.Abs(x))
		}
		for i, x := range row {
			if top > 0 {
				row[i] = quantise(x * 127 / top)
			}
		}
		scales = append(scales, top/127)
	}
	return scales
}
