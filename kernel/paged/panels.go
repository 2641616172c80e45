package paged

import (
	"unsafe"

	"goatb/internal/asm/attend"
	"goatb/internal/cpu"
	"goatb/internal/vec"
)

const (
	// panelRows is the number of rows per head of an item from which on its keys and
	// values are worth packing into panels.
	panelRows = 16
	// packRows is the number of positions of which spans are multiples where keys are
	// packed: those of a vector.
	packRows = 16
)

// panels multiplies the rows of an item with packed keys and values. Sums take their
// products in the same order as where few rows multiply them as they lie: the bits are
// the same. A panel is multiplied with all rows before the next one, so that it stays
// in the first level cache.
type panels struct {
	on    bool
	loops attend.Panels
	// key holds the keys that are loaded at once, value the values of a part.
	key, value []float32
}

// packs reports whether caches of this geometry can be packed: if so scratch has room.
func (g *geometry) packs() bool {
	return g.Key.Direct && g.Value.Direct && g.BlockSize%packRows == 0 && g.ValueDim%attend.PanelColumns == 0 &&
		min(rowsWanted, g.Tokens*g.Group) >= panelRows
}

// wholePanels is the number of columns of the panels that hold n rows.
func wholePanels(n int64) int64 { return ceil(n, attend.PanelColumns) * attend.PanelColumns }

// panelSpan is the row length of n scores: whole panels of the keys that are loaded at
// once may end behind the last of them.
func panelSpan(n int64) int64 { return wholePanels(n) + attend.PanelColumns }

// begin decides whether the item has enough rows and this machine has tiles.
func (p *panels) begin(w *worker) {
	p.on = false
	if p.key != nil && w.queryRows*w.group >= panelRows {
		p.loops, p.on = attend.BestPanels(cpu.Active())
	}
}

// groups calls f for the groups of the rows of a head that a tile multiplies at once,
// the n rows from row x on, of which any sees the first `open` positions of the part.
func (p *panels) groups(w *worker, f func(x, n, open int)) {
	rows := int(w.queryRows * w.group)
	each := p.loops.Group(rows)
	for x := 0; x < rows; x += each {
		n, open := min(each, rows-x), int64(0)
		for r := int64(x) / w.group; r <= int64(x+n-1)/w.group; r++ {
			open = max(open, w.open[r])
		}
		f(x, n, int(open))
	}
}

// scores multiplies the rows of all heads with the keys k, whose scores begin in
// column j of a row of scores.
func (p *panels) scores(w *worker, k *vec.Cache, j int) {
	size, width, span := int(w.t.KeyDim), vec.Padded(int(w.t.KeyDim)), int(w.t.Span)
	rows, n := int(w.queryRows*w.group), k.Rows()
	for h := range k.Heads {
		done := 0
		for _, s := range k.Spans {
			at, step := s.At+h*k.HeadBytes(), k.StepBytes()
			for from := 0; from < s.Rows; {
				m := min(s.Rows-from, attend.PanelColumns-done%attend.PanelColumns)
				to := done/attend.PanelColumns*attend.PanelColumns*width + done%attend.PanelColumns
				p.loops.Keys(attend.Elem(k.Elem), &p.key[to], unsafe.Pointer(&k.Mem[at+from*step]), step, m, size)
				from, done = from+m, done+m
			}
		}
		for c := 0; c < n; c += p.loops.Columns {
			b := &p.key[c/attend.PanelColumns*attend.PanelColumns*width+c%attend.PanelColumns]
			p.groups(w, func(x, n, open int) {
				if row := h*rows + x; j+c < open {
					p.loops.Tiles[n-1](size, &w.query[row*width], width, b, &w.scores[row*span+j+c], span, false)
				}
			})
		}
	}
}

// pack packs the values v of a head, which begin in row j of the part's.
func (p *panels) pack(w *worker, v *vec.Cache, h, j int) {
	stride := int(w.t.Span) * attend.PanelColumns
	for _, s := range v.Spans {
		at := s.At + h*v.HeadBytes()
		p.loops.Values(attend.Elem(v.Elem), &p.value[j*attend.PanelColumns], stride, unsafe.Pointer(&v.Mem[at]), v.StepBytes(), s.Rows, int(w.t.ValueDim))
		j += s.Rows
	}
}

// mix weighs the packed values of a part with the probabilities of a head's rows; those
// of positions that a row does not see are 0.
func (p *panels) mix(w *worker, h int) {
	size, span, rows := int(w.t.ValueDim), int(w.t.Span), int(w.queryRows*w.group)
	for c := 0; c < size; c += p.loops.Columns {
		b := &p.value[c/attend.PanelColumns*span*attend.PanelColumns+c%attend.PanelColumns]
		p.groups(w, func(x, n, open int) {
			row := h*rows + x
			p.loops.Tiles[n-1](max(open, 1), &w.scores[row*span], span, b, &w.part[row*size+c], size, false)
		})
	}
}
