package attention

import (
	"unsafe"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
	"goatb/internal/vec"
	"goatb/tensor"
)

const (
	// panelRows is the number of rows of an item from which on a tile of keys is
	// worth packing into panels.
	panelRows = 16
	// maxGroup is the most rows of a tile of products, turnWidth the most that
	// are transposed at once, which is also the room behind what is transposed.
	maxGroup, turnWidth = 14, 16
)

// panels multiplies groups of rows with packed keys and values by the tiles of
// matrix products. A score adds its products in order from 0 and a tile's values
// are summed from 0 and then added, as for a few rows: the bits are the same.
type panels struct {
	on    bool
	set   gemm.Set
	query []float32
	key   []float32
	value []float32
	// weights are the packed weights of a group, sums its products.
	weights, sums []float32
	// group is the number of rows of a group, the last of which may have fewer.
	group int
	// checked says that allFinite tells about the packed values.
	checked, allFinite bool
}

// rowSet returns the tiles of float32 rows of this machine.
func rowSet() (gemm.Set, bool) {
	for _, s := range gemm.Sets() {
		if s.Elem == gemm.F32 && cpu.Active().Has(s.Needs) {
			return s, true
		}
	}
	return gemm.Set{}, false
}

func at(s []float32, i int) *byte { return (*byte)(unsafe.Pointer(&s[i])) }

// panelWidth is the number of columns of values in whole panels.
func panelWidth(n int64) int64 {
	return (n + gemm.PanelColumns - 1) / gemm.PanelColumns * gemm.PanelColumns
}

// begin packs the item's queries if there are enough rows and this machine has
// tiles.
func (p *panels) begin(w *worker) {
	p.on = false
	if w.rows < panelRows {
		return
	}
	if p.set.Rows == nil {
		set, ok := rowSet()
		if !ok {
			return
		}
		p.set = set
	}
	p.on = true
	groups := (w.rows + int(p.set.MaxRows()) - 1) / int(p.set.MaxRows())
	p.group = (w.rows + groups - 1) / groups
	size := int(w.t.P.KeySize)
	width := vec.Padded(size)
	for x := 0; x < w.rows; x += p.group {
		n := min(p.group, w.rows-x)
		p.turn(p.query[x*size:], n, w.query[x*width:], width, size, n)
	}
}

// turn transposes n rows of words elements, stride apart, to steps of width.
func (p *panels) turn(dst []float32, width int, src []float32, stride, words, n int) {
	most := int(p.set.Width)
	for x := 0; x < n; x += most {
		p.set.Turn(words, at(dst, x), 4*width, at(src, x*stride), 4*stride, min(most, n-x), 0)
	}
}

// scores multiplies all rows with n keys.
func (p *panels) scores(w *worker, k *vec.Cache, n int) {
	size := int(w.t.P.KeySize)
	rows, stride := floats(k), k.Step
	for j := 0; j < n; j += gemm.PanelColumns {
		p.turn(p.key[j*size:], gemm.PanelColumns, rows[j*stride:], stride, size, min(gemm.PanelColumns, n-j))
	}
	for x := 0; x < w.rows; x += p.group {
		g := min(p.group, w.rows-x)
		hi := 0
		for r := x; r < x+g; r++ {
			row, _ := w.row(r)
			_, h := w.within(row, w.tileFrom, w.tileFrom+int64(n))
			hi = max(hi, int(h-w.tileFrom))
		}
		for j := 0; j < hi; j += int(p.set.Columns) {
			b := p.key[j/gemm.PanelColumns*gemm.PanelColumns*size+j%gemm.PanelColumns:]
			p.set.Rows[g-1](size, at(p.query, x*size), at(b, 0), at(w.score, x*w.keyTile+j), w.keyTile, false, 0, 0)
		}
	}
}

// pack packs n rows of values.
func (p *panels) pack(w *worker, v *vec.Cache, n int) {
	size := int(w.t.P.ValueSize)
	rows := floats(v)
	p.checked = false
	for j := range n {
		row := rows[j*v.Step:][:size]
		for c := 0; c < size; c += gemm.PanelColumns {
			m := min(gemm.PanelColumns, size-c)
			copy(p.value[(c/gemm.PanelColumns*w.keyTile+j)*gemm.PanelColumns:][:m], row[c:c+m])
		}
	}
}

// finite reports whether the squares of the tile's n rows of values have finite
// sums: then a weight of 0 adds nothing.
func (p *panels) finite(w *worker, v *vec.Cache, n int) bool {
	if !p.checked {
		p.checked, p.allFinite = true, true
		rows := floats(v)
		for j := 0; j < n && p.allFinite; j++ {
			s := vec.SumSquares(rows[j*v.Step:][:w.t.P.ValueSize])
			p.allFinite = s-s == 0
		}
	}
	return p.allFinite
}

// mix adds the packed values of the keys [lo, hi) of the tile, weighted with the
// scores of g rows from row x on.
func (p *panels) mix(w *worker, x, g, lo, hi int) {
	size, width := int(w.t.P.ValueSize), int(panelWidth(w.t.P.ValueSize))
	p.turn(p.weights, g, w.score[x*w.keyTile+lo:], w.keyTile, hi-lo, g)
	for c := 0; c < size; c += int(p.set.Columns) {
		b := p.value[(c/gemm.PanelColumns*w.keyTile+lo)*gemm.PanelColumns+c%gemm.PanelColumns:]
		p.set.Rows[g-1](hi-lo, at(p.weights, 0), at(b, 0), at(p.sums, c), width, false, 0, 0)
	}
	for r := range g {
		values := w.part.values[(x+r)*size:][:size]
		vec.Add(values, values, p.sums[r*width:][:size])
	}
}

// floats are the rows of a cache of float32, from the first on.
func floats(c *vec.Cache) []float32 { return device.View[float32](c.Mem)[c.Spans[0].At/4:] }

// isFlat reports whether panels take rows of a type where they lie.
func isFlat(t tensor.DType) bool { return t == tensor.Float32 }
