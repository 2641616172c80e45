package reference

import (
	"cmp"
	"math"
	"slices"

	"goatb/tensor"
)

// sortRows orders each row from its largest element down, NaN first, equal
// elements by position, and keeps the first ones.
func sortRows(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ Num []int64 }{})
	x := &c.In[0]
	n, num := x.Desc.Dim(-1), p.Num[0]
	d := x.Desc
	d.Shape = d.Shape.With(d.Rank()-1, num)
	v := x.Floats()
	from, positions := make([]int64, 0, d.Numel()), make([]int64, 0, d.Numel())
	order := make([]int64, n)
	for row := int64(0); row < int64(len(v)); row += n {
		for i := range order {
			order[i] = row + int64(i)
		}
		slices.SortStableFunc(order, func(a, b int64) int { return falling(v[a], v[b]) })
		for _, at := range order[:num] {
			from, positions = append(from, at), append(positions, at-row)
		}
	}
	at := d
	at.DType = tensor.Int32
	return []Tensor{move(d, x, from), OfInts(at, positions)}, err
}

// falling compares for a falling order with NaN first.
func falling(a, b float64) int {
	switch {
	case math.IsNaN(a) == math.IsNaN(b):
		return cmp.Compare(b, a)
	case math.IsNaN(a):
		return -1
	}
	return 1
}
