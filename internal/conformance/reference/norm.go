package reference

import (
	"math"

	"goatb/tensor"
)

// normParam is the part of RmsNormOperation's JSON that a layer type selects.
type normParam struct {
	QuantType, PrecisionMode, ModelType, DynamicQuantType int
	Epsilon                                               float32
	Rstd, HasBias                                         bool
}

func rmsNorm(c *Input) ([]Tensor, error) {
	def := normParam{Epsilon: 1e-5}
	p, err := params(c, struct {
		LayerType                              int
		NormParam, PreNormParam, PostNormParam normParam
	}{1, def, def, def})
	if err != nil {
		return nil, err
	}
	switch p.LayerType {
	case 2:
		return preNorm(c, p.PreNormParam), nil
	case 3:
		return postNorm(c, p.PostNormParam), nil
	}
	return plainNorm(c, p.NormParam), nil
}

// normed holds v*r*gamma and the factors r of a norm over rows of n elements.
type normed struct {
	y, r []float64
	n    int64
}

// norm computes v/sqrt(mean(v*v)+eps)*gamma over rows of n elements; scale maps
// the normalised value and gamma to the result.
func norm(v, gamma []float64, n int64, eps float32, scale func(x, g float64) float64) normed {
	m := normed{y: make([]float64, len(v)), n: n}
	for at := int64(0); at < int64(len(v)); at += n {
		sum := 0.0
		for _, x := range v[at : at+n] {
			sum += x * x
		}
		r := 1 / math.Sqrt(sum/float64(n)+float64(eps))
		for i, x := range v[at : at+n] {
			m.y[at+int64(i)] = scale(x*r, gamma[int64(i)%int64(len(gamma))])
		}
		m.r = append(m.r, r)
	}
	return m
}

func times(x, g float64) float64 { return x * g }

// plainNorm does layer type NORM.
func plainNorm(c *Input, p normParam) []Tensor {
	x, gamma := &c.In[0], &c.In[1]
	n := x.Desc.Dim(-1)
	if p.Rstd {
		n = gamma.Desc.Numel()
	}
	scale := times
	if p.ModelType == 1 {
		scale = func(x, g float64) float64 { return x * (1 + g) }
	}
	if p.PrecisionMode == 1 {
		scale = func(x, g float64) float64 { return Round(tensor.Float16, x) * g }
	}
	m := norm(x.Floats(), gamma.Floats(), n, p.Epsilon, scale)
	switch {
	case p.QuantType == 0 && !p.Rstd:
		return []Tensor{OfFloats(x.Desc, m.y)}
	case p.Rstd:
		d := x.Desc
		for k := 1; k <= gamma.Desc.Rank(); k++ {
			d.Shape = d.Shape.With(-k, 1)
		}
		return []Tensor{OfFloats(x.Desc, m.y), OfFloats(d, m.r)}
	}
	beta := c.In[2].Floats()
	for i := range m.y {
		m.y[i] += beta[i%len(beta)]
	}
	if p.DynamicQuantType != 0 {
		d := x.Desc
		d.Shape = d.Shape.Slice(0, d.Rank()-1)
		return []Tensor{OfFloats(x.Desc, m.y), OfFloats(d, quantRows(m.y, n))}
	}
	return []Tensor{OfFloats(x.Desc, quantBy(m.y, &c.In[3], &c.In[4]))}
}

// quantBy rounds y/scale+offset to int8.
func quantBy(y []float64, scale, offset *Tensor) []float64 {
	s, o := scale.Floats()[0], offset.Floats()[0]
	q := make([]float64, len(y))
	for i, v := range y {
		q[i] = quantise(v/s + o)
	}
	return q
}

// sums adds the first tensors, those with fewer elements repeating.
func sums(in []Tensor) []float64 {
	v := in[0].Floats()
	for k := range in[1:] {
		w := in[k+1].Floats()
		for i := range v {
			v[i] += w[i%len(w)]
		}
	}
	return v
}

// preNorm does layer type PRENORM: the sum is an output too.
func preNorm(c *Input, p normParam) []Tensor {
	terms := 2
	if p.HasBias {
		terms = 3
	}
	x := c.In[0].Desc
	s, gamma := sums(c.In[:terms]), c.In[terms].Floats()
	y := norm(s, gamma, x.Dim(-1), p.Epsilon, times).y
	if p.QuantType != 0 {
		beta := c.In[terms+1].Floats()
		for i := range y {
			y[i] += beta[i%len(beta)]
		}
		y = quantBy(y, &c.In[terms+2], &c.In[terms+3])
	}
	return []Tensor{OfFloats(x, y), OfFloats(x, s)}
}

// postNorm does layer type POSTNORM; quantised, the float result comes second.
func postNorm(c *Input, p normParam) []Tensor {
	terms := 2
	if p.HasBias {
		terms = 3
	}
	x := c.In[0].Desc
	y := norm(sums(c.In[:terms]), c.In[terms].Floats(), x.Dim(-1), p.Epsilon, times).y
	if p.QuantType == 0 {
		return []Tensor{OfFloats(x, y)}
	}
	q := quantBy(y, &c.In[terms+1], &c.In[terms+2])
	return []Tensor{OfFloats(x, q), OfFloats(x, y)}
}
