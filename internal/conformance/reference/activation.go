package reference

import (
	"fmt"
	"math"
)

// activation computes ActivationOperation.
func activation(c *Input) ([]Tensor, error) {
	p, err := params(c, struct {
		ActivationType, GeluMode int
		Scale                    float32
	}{Scale: 1})
	if err != nil {
		return nil, err
	}
	x := &c.In[0]
	switch p.ActivationType {
	case 1:
		return apply(x, func(v float64) float64 { return max(v, 0) }), nil
	case 2:
		if p.GeluMode == 1 {
			return apply(x, func(v float64) float64 { return v / 2 * math.Erfc(-v/math.Sqrt2) }), nil
		}
		return apply(x, func(v float64) float64 {
			return v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		}), nil
	case 3:
		return apply(x, func(v float64) float64 {
			return v * math.Exp(0.851*(v-math.Abs(v))) / (1 + math.Exp(-1.702*math.Abs(v)))
		}), nil
	case 4:
		return apply(x, func(v float64) float64 { return v * sigmoid(float64(p.Scale)*v) }), nil
	case 5:
		return apply(x, math.Log), nil
	case 6:
		return swiglu(x), nil
	case 7:
		return swigluGrad(x, &c.In[1]), nil
	case 8:
		return apply(x, sigmoid), nil
	case 9:
		return apply(x, func(v float64) float64 {
			return v * sigmoid(1.702*math.Abs(v)) * math.Exp(0.851*(v-math.Abs(v)))
		}), nil
	}
	return nil, fmt.Errorf("activationType %d: %w", p.ActivationType, ErrNone)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// swiglu computes silu(a)*b for the halves a and b of every row.
func swiglu(x *Tensor) []Tensor {
	v, n := x.Floats(), x.Desc.Dim(-1)
	h := n / 2
	d := x.Desc
	d.Shape = d.Shape.With(-1, h)
	out := make([]float64, d.Numel())
	for i := range out {
		row := v[int64(i)/h*n:]
		a, b := row[int64(i)%h], row[h+int64(i)%h]
		out[i] = a * sigmoid(a) * b
	}
	return []Tensor{OfFloats(d, out)}
}

// swigluGrad computes the gradient of swiglu at x for the output gradient dy.
func swigluGrad(dy, x *Tensor) []Tensor {
	g, v, n := dy.Floats(), x.Floats(), x.Desc.Dim(-1)
	h := n / 2
	out := make([]float64, len(v))
	for i, dy := range g {
		row, at := int64(i)/h*n, int64(i)%h
		a, b := v[row+at], v[row+h+at]
		s := sigmoid(a)
		out[row+at] = dy * b * (s + a*s*(1-s))
		out[row+h+at] = dy * a * s
	}
	return []Tensor{OfFloats(x.Desc, out)}
}
