package tensor

import "math"

// PanelColumns is the number of columns of a panel of the layout Panels.
const PanelColumns = 32

// PanelStep returns how many elements of one column lie side by side in the
// layout Panels: as many as one multiply-add instruction takes of a column. It
// is 0 for types that the layout does not have.
func PanelStep(t DType) int64 {
	switch t {
	case Float32, Float16:
		return 1
	case BFloat16:
		return 2
	case Int8:
		return 4
	}
	return 0
}

// PanelBytes returns the bytes of one panel over k elements of each column: its
// steps, and behind those of int8 one int32 for each column, see Panels. It is 0
// for types that the layout does not have and sizes that leave int64.
func PanelBytes(t DType, k int64) int64 {
	step := PanelStep(t)
	if step == 0 || k < 1 || k > math.MaxInt64/(4*PanelColumns)-8 {
		return 0
	}
	n := (k + step - 1) / step * step * PanelColumns * t.Size()
	if t == Int8 {
		n += 4 * PanelColumns
	}
	return n
}

// panelsBytes returns the bytes of weights [n,k] or [b,n,k] in layout Panels.
func (d *Desc) panelsBytes() int64 {
	if r := d.Rank(); r != 2 && r != 3 || d.Numel() == 0 {
		return 0
	}
	panel, count := PanelBytes(d.DType, d.Dim(-1)), (d.Dim(-2)-1)/PanelColumns+1
	if d.Rank() == 3 {
		if d.Dim(0) > math.MaxInt64/count {
			return 0
		}
		count *= d.Dim(0)
	}
	if panel == 0 || count > math.MaxInt64/panel {
		return 0
	}
	return panel * count
}
