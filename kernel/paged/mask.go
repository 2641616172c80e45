package paged

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// maskView says where a row of the mask lies: strides in elements, 0 along an
// axis that is shared.
type maskView struct {
	Sequence, Head, Token, Position int64
	// Positions bounds the context where the mask has a row per position.
	Positions int64
	Type      tensor.DType
	Present   bool
	// Causal hides the positions behind a query row's own.
	Causal bool
}

// row returns the offset of the mask row of a query row.
func (m *maskView) row(sequence, head, token, position int64) int64 {
	return sequence*m.Sequence + head*m.Head + token*m.Token + position*m.Position
}

// measureMask checks the mask and bounds the context by its columns.
func (g *geometry) measureMask(p *kernel.Problem, a Params) error {
	d := &p.In[InMask]
	g.Mask.Causal = a.Mask == Causal
	if d.Empty() != (a.Mask == NoMask || a.Mask == Causal) {
		return status.Errorf(status.ErrInvalidParam, "mask mode %d does not go with mask %s", a.Mask, d)
	}
	if d.Empty() {
		return nil
	}
	if !isFloat(d.DType) {
		return status.Errorf(status.ErrInvalidParam, "want a float mask, got %s", d)
	}
	batch := g.Sequences
	if a.PerHead {
		batch = g.Tokens
	}
	g.MaxContext = min(g.MaxContext, d.Dim(-1))
	return g.Mask.fill(d, a.Mask, batch, g.Heads, g.Tokens)
}

// fill finds the strides of a mask.
func (m *maskView) fill(d *tensor.Desc, mode MaskMode, batch, heads, tokens int64) error {
	m.Type, m.Present = d.DType, true
	rank, columns := d.Rank(), d.Dim(-1)
	axis := func(i int, want int64, stride *int64) bool {
		if d.Dim(i) > 1 {
			*stride = d.Shape.Product(i+1, rank)
		}
		return d.Dim(i) == 1 || d.Dim(i) == want
	}
	ok := rank >= 2
	switch {
	case mode == BySequence && rank <= 4:
		ok = ok && axis(0, batch, &m.Sequence)
		ok = ok && (rank < 3 || axis(1, heads, &m.Head))
		ok = ok && (rank < 4 || d.Dim(2) == 1)
	case mode == ByToken && rank == 2:
		m.Token = columns
		ok = d.Dim(0) == tokens
	case mode == ByPosition && rank == 2:
		m.Position, m.Positions = columns, d.Dim(0)
	case mode == ByPosition && rank == 3:
		ok = axis(0, batch, &m.Sequence)
		if d.Dim(1) > 1 {
			m.Position, m.Positions = columns, d.Dim(1)
		}
	default:
		ok = false
	}
	if !ok {
		return status.Errorf(status.ErrInvalidParam, "mask %s does not go with %d sequences, %d heads, %d query rows", d, batch, heads, tokens)
	}
	return nil
}

// open returns how many of the n elements from element at on come before the
// run of -Inf that the row ends with.
func (m *maskView) open(mem []byte, at, n int64) int64 {
	switch m.Type {
	case tensor.Float32:
		return openBits(device.View[uint32](mem)[at:at+n], 0xff800000)
	case tensor.Float16:
		return openBits(device.View[uint16](mem)[at:at+n], 0xfc00)
	default:
		return openBits(device.View[uint16](mem)[at:at+n], 0xff80)
	}
}

func openBits[T uint16 | uint32](row []T, hidden T) int64 {
	n := len(row)
	for n > 0 && row[n-1] == hidden {
		n--
	}
	return int64(n)
}
