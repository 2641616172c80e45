package attention

import (
	"unsafe"

	"goatb/device"
	inner "goatb/internal/asm/attend"
	"goatb/internal/cpu"
	"goatb/internal/vec"
)

const (
	// panelRows is the number of rows of an item from which on a tile of keys is
	// worth packing into panels.
	panelRows = 16
	// mostTileRows are the most rows of a tile of products.
	mostTileRows = 14
	// mostGroups bounds the groups of an item: the smallest largest tile has 6 rows.
	mostGroups = (maxRows + 5) / 6
)

// panels multiplies groups of rows with packed keys and values. A score adds its
// products in order from 0 and a tile's values are summed from 0 and then added,
// as for a few rows: the bits are the same. A panel is multiplied with all groups
// before the next one, so that it stays in the first level cache.
type panels struct {
	on         bool
	loops      inner.Panels
	key, value []float32
	// sums are products with columns that the last panel of values has but the
	// values have not.
	sums []float32
	// group is the number of rows of a group, the last of which may have fewer.
	group int
	// seen are the keys of the tile that the rows of a group see, any of them.
	seen [mostGroups]struct{ lo, hi int }
	// checked says that allFinite tells about the packed values.
	checked, allFinite bool
}

func at(s []float32, i int) *float32 { return &s[i] }

// panelWidth is the number of columns of values in whole panels.
func panelWidth(n int64) int64 {
	return (n + inner.PanelColumns - 1) / inner.PanelColumns * inner.PanelColumns
}

// begin decides whether the item has enough rows and this machine has tiles.
func (p *panels) begin(w *worker) {
	p.on = false
	if w.rows < panelRows {
		return
	}
	if p.loops, p.on = inner.BestPanels(cpu.Active()); p.on {
		p.group = p.loops.Group(w.rows)
	}
}

// groups calls f for every group: g is its number, x its first row, n the number of
// its rows.
func (p *panels) groups(rows int, f func(g, x, n int)) {
	for g, x := 0, 0; x < rows; g, x = g+1, x+p.group {
		f(g, x, min(p.group, rows-x))
	}
}

// firstRow is where the rows of a cache begin.
func firstRow(c *vec.Cache) unsafe.Pointer { return unsafe.Pointer(&c.Mem[c.Spans[0].At]) }

// scores multiplies all rows with the n keys of the tile, as far as a group sees
// them.
func (p *panels) scores(w *worker, k *vec.Cache, n int) {
	size := int(w.t.P.KeySize)
	width := vec.Padded(size)
	p.loops.Keys(inner.Elem(k.Elem), at(p.key, 0), firstRow(k), k.StepBytes(), n, size)
	p.groups(w.rows, func(g, x, m int) {
		p.seen[g].hi = 0
		for r := x; r < x+m; r++ {
			_, h := w.within(r, w.tileFrom, w.tileFrom+int64(n))
			p.seen[g].hi = max(p.seen[g].hi, int(h-w.tileFrom))
		}
	})
	for j := 0; j < n; j += p.loops.Columns {
		b := at(p.key, j/inner.PanelColumns*inner.PanelColumns*width+j%inner.PanelColumns)
		p.groups(w.rows, func(g, x, m int) {
			if j < p.seen[g].hi {
				p.loops.Tiles[m-1](size, at(w.query, x*width), width, b, at(w.score, x*w.keyTile+j), w.keyTile, false)
			}
		})
	}
}

// mix adds the values of the keys [from, to), weighted with the scores of all rows.
func (p *panels) mix(w *worker, v *vec.Cache, from, to int64) {
	size, n := int(w.t.P.ValueSize), int(to-from)
	p.checked = false
	if size%inner.PanelColumns != 0 {
		last := p.value[size/inner.PanelColumns*inner.PanelColumns*w.keyTile:]
		clear(last[:n*inner.PanelColumns])
	}
	p.loops.Values(inner.Elem(v.Elem), at(p.value, 0), w.keyTile*inner.PanelColumns, firstRow(v), v.StepBytes(), n, size)
	p.groups(w.rows, func(g, x, m int) {
		lo, hi, even := w.spread(from, to, x, m)
		if lo < hi && !even && !p.finite(w, n) {
			w.mixRows(v, from, to, x, m)
			lo, hi = from, from
		}
		p.seen[g].lo, p.seen[g].hi = int(lo-from), int(hi-from)
	})
	for c := 0; c < size; c += p.loops.Columns {
		p.groups(w.rows, func(g, x, m int) {
			if s := p.seen[g]; s.lo < s.hi {
				p.mixColumns(w, c, x, m, s.lo, s.hi)
			}
		})
	}
}

// mixColumns adds a tile's columns from column c on for m rows from row x on and
// the keys [lo, hi) of the tile.
func (p *panels) mixColumns(w *worker, c, x, m, lo, hi int) {
	size := int(w.t.P.ValueSize)
	a := at(w.score, x*w.keyTile+lo)
	b := at(p.value, (c/inner.PanelColumns*w.keyTile+lo)*inner.PanelColumns+c%inner.PanelColumns)
	if c+p.loops.Columns <= size {
		p.loops.Tiles[m-1](hi-lo, a, w.keyTile, b, at(w.part.values, x*size+c), size, true)
		return
	}
	p.loops.Tiles[m-1](hi-lo, a, w.keyTile, b, at(p.sums, 0), inner.PanelColumns, false)
	for r := range m {
		values := w.part.values[(x+r)*size+c : (x+r+1)*size]
		vec.Add(values, values, p.sums[r*inner.PanelColumns:][:len(values)])
	}
}

// finite reports whether the squares of the packed values of n keys have finite
// sums: then a weight of 0 adds nothing.
func (p *panels) finite(w *worker, n int) bool {
	if !p.checked {
		p.checked, p.allFinite = true, true
		for c := int64(0); c < w.t.P.ValueSize && p.allFinite; c += inner.PanelColumns {
			s := vec.SumSquares(p.value[int(c)*w.keyTile:][:n*inner.PanelColumns])
			p.allFinite = s-s == 0
		}
	}
	return p.allFinite
}

// sight is the keys [lo, hi) that a row sees, in memory of the scratch.
func (w *worker) sight(x int) (lo, hi int64) { return w.sights[2*x], w.sights[2*x+1] }

// findSights fills the sights of the item's rows.
func (w *worker) findSights() {
	a := &w.t.P
	group := w.t.Group
	for x := 0; x < w.rows; {
		r, head := w.row(x)
		lo, hi := w.seq.visible(a, r)
		for end := min(w.rows, x+int(group-head%group)); x < end; x++ {
			w.sights[2*x], w.sights[2*x+1] = lo, hi
		}
	}
}

// sightsIn uses memory for sights.
func sightsIn(buf []float32) []int64 { return device.View[int64](device.BytesOf(buf)) }
