package attention

import (
	"goatb/kernel"
	"goatb/kernel/parts"
	"goatb/tensor"
)

// maxKeys bounds the keys of a sequence where the operands do not, so that
// products of sizes stay in int64.
const maxKeys = 1 << 40

// longest bounds the keys of a sequence.
func (a *Params) longest() int64 {
	n := a.Slots
	switch {
	case a.Ring:
		n = maxKeys
	case a.Source == Paged && a.Columns > maxKeys/max(a.Slots, 1):
		n = maxKeys
	case a.Source == Paged:
		n *= a.Columns
	}
	if a.Bias == MaskBias {
		n = min(n, a.Mask.Cols)
	}
	return n
}

// maxParts bounds the parts that the rows of a sequence see. The keys in the
// windows of neighbouring rows follow each other, and may begin anywhere in a
// part.
func (a *Params) maxParts() int64 {
	n := parts.Count(a.longest())
	if a.Window > 0 && a.Window < maxKeys {
		n = min(n, parts.Count(a.Window+a.Rows-2)+1)
	}
	return n
}

// outRows returns the number of output rows: pairs of a query row and a head.
func (a *Params) outRows() int64 {
	n := a.Rows * a.Heads
	if a.Query.Batch != 0 {
		n *= a.Batch
	}
	return n
}

// dense reports whether the output is its rows and nothing else.
func (a *Params) dense() bool {
	for _, s := range [...]int64{a.Out.Row, a.Out.Head, a.Out.Batch} {
		if s%a.ValueSize != 0 {
			return false
		}
	}
	return reach(a.Out, 0, a.Batch, a.Rows, a.Heads, a.ValueSize) == a.outRows()*a.ValueSize
}

// PartsDesc describes the output of Parts.
func (a *Params) PartsDesc() tensor.Desc {
	return parts.Desc(a.outRows(), a.maxParts(), a.ValueSize)
}

// Split tells whether Parts and parts.Merge suit a problem better than Attend:
// the cores have fewer items than even out, and a key head has parts for all of
// them. What decides hangs on descriptors, so a plan stays while keys grow.
//
// Measured with BenchmarkForms on two cores, two kernels over four parts or more
// take 0.5 to 0.92 of one kernel's time for a row of one head, of three heads,
// and of grouped heads, which one kernel has to cut, so that it loads keys
// twice; over two or three parts they take 0.6 to 1.3 of it. Items that are one
// row each and as many as the cores, or twice as many items, gain nothing. A few
// keys in a large cache pay for the second kernel, up to 2 microseconds.
func Split(a Params, m kernel.Machine) bool {
	const minParts = 4
	n, cores := a.maxParts(), int64(max(m.Cores, 1))
	items, whole := a.decodeItems()
	if m.Accelerator || whole && items%cores == 0 {
		return false
	}
	return cores > 1 && n >= minParts && items > 0 && items < itemsPerBlock*cores &&
		a.Quant == NoQuant && a.dense() && parts.Fits(a.outRows(), n, a.ValueSize)
}

// decodeItems estimates the number of items when every sequence has rows, and
// tells whether they are a row each, which cannot be cut.
func (a *Params) decodeItems() (items int64, whole bool) {
	tiles := func(rows int64) int64 { return (rows*a.group() + a.mostRows() - 1) / a.mostRows() }
	if a.Query.Batch != 0 {
		return a.KeyHeads * a.Batch * tiles(a.Rows), a.Rows*a.group() == 1
	}
	n := min(a.Batch, a.Rows)
	return a.KeyHeads * max(n, tiles(a.Rows)), n == a.Rows && a.group() == 1
}
