package reference

import "goatb/tensor"

// rope rotates q and k. With float16 cos and sin every product and the sum are
// rounded to float16; otherwise nothing is rounded on the way.
func rope(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ RotaryCoeff int64 }{4})
	cos, sin := c.In[2].Floats(), c.In[3].Floats()
	width := c.In[2].Desc.Dim(-1)
	step := tensor.Undefined
	if c.In[2].Desc.DType == tensor.Float16 {
		step = tensor.Float16
	}
	tokens := c.In[2].Desc.Dim(0)
	var out []Tensor
	for i := range c.In[:2] {
		x := c.In[i].Floats()
		y := make([]float64, len(x))
		perToken := int64(len(x)) / tokens
		for t := range tokens {
			cosRow, sinRow := cos[t*width:(t+1)*width], sin[t*width:(t+1)*width]
			for at := t * perToken; at < (t+1)*perToken; at += width {
				rotate(y[at:at+width], x[at:at+width], cosRow, sinRow, p.RotaryCoeff, step)
			}
		}
		out = append(out, OfFloats(c.In[i].Desc, y))
	}
	return out, err
}

// rotate cuts a head into coeff/2 groups and rotates the halves of each.
func rotate(y, x, cos, sin []float64, coeff int64, step tensor.DType) {
	half := int64(len(x)) / coeff
	for g := int64(0); g < int64(len(x)); g += 2 * half {
		for i := g; i < g+half; i++ {
			a, b := x[i], x[i+half]
			y[i] = Round(step, Round(step, a*cos[i])+Round(step, -b*sin[i]))
			y[i+half] = Round(step, Round(step, b*cos[i+half])+Round(step, a*sin[i+half]))
		}
	}
}
