package reference

import "fmt"

// indexAdd adds the updates in float64, all of them or as many as input 3 says.
func indexAdd(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ IndexType, Axis int }{})
	x := &c.In[0]
	axis := (p.Axis + x.Desc.Rank()) % x.Desc.Rank()
	indices, updates, sums := c.In[1].Ints(), c.In[2].Floats(), x.Floats()
	factor := 1.0
	switch p.IndexType {
	case 1:
		factor = c.In[3].Floats()[0]
	case 2:
		indices = indices[:c.In[3].Ints()[0]]
	default:
		return nil, fmt.Errorf("index type %d: %w", p.IndexType, ErrNone)
	}
	count, rows, inner := c.In[1].Desc.Numel(), x.Desc.Dim(axis), x.Desc.Shape.Product(axis+1, x.Desc.Rank())
	for o := range x.Desc.Shape.Product(0, axis) {
		for j, i := range indices {
			to, from := (o*rows+i)*inner, (o*count+int64(j))*inner
			for k := range inner {
				sums[to+k] += factor * updates[from+k]
			}
		}
	}
	return []Tensor{OfFloats(x.Desc, sums)}, err
}
