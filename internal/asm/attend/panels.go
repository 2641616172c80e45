package attend

import (
	"unsafe"

	"goatb/internal/cpu"
)

// PanelColumns is the number of f32 of a step of a panel.
const PanelColumns = 32

// Tile multiplies rows of f32, lda apart, with a panel:
//
//	c[r][j] = sum over s of a[r][s]·b[s][j]      (+ c[r][j] with add)
//
// Rows of c are ldc apart. The sum of an element is one accumulator that takes its
// products in order from 0, each by a fused multiply-add. There is at least one
// step.
type Tile func(steps int, a *float32, lda int, b, c *float32, ldc int, add bool)

// Panels are the loops of an instruction set that multiply many rows.
type Panels struct {
	// Tiles holds the tiles of 1, 2, ... rows.
	Tiles []Tile
	// Columns is the number of columns of a tile: a panel, or half of one.
	Columns int
	wide    bool
}

// BestPanels returns the fastest loops that f allows; ok is false if there are
// none.
func BestPanels(f cpu.Features) (p Panels, ok bool) {
	switch {
	case !present:
	case f.Has(cpu.AVX512):
		return panelsAVX512, true
	case f.Has(cpu.AVX2):
		return panelsAVX2, true
	}
	return Panels{}, false
}

// Group is the number of rows of a tile where rows are cut into as few groups of about
// the same size as tiles take; the last group may have fewer.
func (p *Panels) Group(rows int) int {
	groups := (rows + len(p.Tiles) - 1) / len(p.Tiles)
	return (rows + groups - 1) / groups
}

// Keys packs n rows of a cache, step bytes apart, into panels of PanelColumns
// rows, each with a step for each of the width elements of a row, up to a multiple
// of Chunk. Best takes the width. A panel's columns behind the last row repeat it.
func (p *Panels) Keys(e Elem, dst *float32, src unsafe.Pointer, step, n, width int) {
	size := (width + Chunk - 1) / Chunk * Chunk * PanelColumns
	lanes := 8
	if p.wide {
		lanes = 16
	}
	for j := 0; j < n; j += lanes {
		to := j/PanelColumns*size + j%PanelColumns
		span := Span{At: j * step, Rows: n - j}
		a := Args{
			Rows: src, Step: step, Spans: &span, Count: n - j, Width: width,
			Y: (*float32)(unsafe.Add(unsafe.Pointer(dst), 4*to)),
		}
		a.X = a.Y
		next := Ahead{At: uintptr(src) + uintptr((j+lanes)*step), Bytes: width * e.size(), Step: step, Rows: lanes}
		if j+2*lanes <= n {
			a.Fetch, a.Fetches = &next, 1
		}
		if p.wide {
			packKeysAVX512(e, &a)
		} else {
			packKeysAVX2(e, &a)
		}
	}
}

// Values packs n rows of a cache, step bytes apart, into panels of PanelColumns
// elements, each with a step for each row, panels stride f32 apart. Best takes the
// width. The last panel's columns behind the width are left up to a register.
func (p *Panels) Values(e Elem, dst *float32, stride int, src unsafe.Pointer, step, n, width int) {
	a := Args{Rows: src, Step: step, Count: n, Width: width, Y: dst, YRow: 4 * stride}
	if p.wide {
		packValuesAVX512(e, &a)
	} else {
		packValuesAVX2(e, &a)
	}
}
