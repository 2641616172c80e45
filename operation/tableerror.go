package operation

import (
	"slices"
	"strconv"
	"strings"

	"goatb/status"
	"goatb/tensor"
)

// tableError says why tensors fit no row of the table: the first of them that has
// a type or a layout which no row has there, else the first that no row has beside
// the ones before it, with everything that would do.
func (c *checker) tableError(in, out []tensor.Desc) error {
	rows := c.combos
	for i := range len(in) + len(out) {
		d, name := at(in, out, i), portName("input", i, c.sig.In)
		if i >= len(in) {
			name = portName("output", i-len(in), c.sig.Out)
		}
		if d.Empty() {
			continue
		}
		if fits := rowsWith(c.combos, len(in), i, Cell{d.DType, d.Format}); len(fits) == 0 {
			return status.Errorf(status.ErrInvalidTensorIniMatch, "want %s, got %s", cellsAt(c.combos, len(in), i), d).On(name)
		}
		fits := rowsWith(rows, len(in), i, Cell{d.DType, d.Format})
		if len(fits) == 0 {
			return status.Errorf(status.ErrInvalidTensorIniMatch, "want %s beside %s, got %s", cellsAt(rows, len(in), i), beside(c.sig, in, out, i), d).On(name)
		}
		rows = fits
	}
	return status.Errorf(status.ErrInvalidTensorIniMatch, "want one of %s, got %s", rowList(c.combos), Combo{In: cellsOf(in), Out: cellsOf(out)})
}

// at returns operand i, outputs after inputs.
func at(in, out []tensor.Desc, i int) *tensor.Desc {
	if i < len(in) {
		return &in[i]
	}
	return &out[i-len(in)]
}

// cellAt returns the cell of operand i of a row, outputs after inputs, and false
// when it has none.
func cellAt(row *Combo, inputs, i int) (Cell, bool) {
	cells := row.In
	if i >= inputs {
		cells, i = row.Out, i-inputs
	}
	if i >= len(cells) {
		return Cell{}, false
	}
	return cells[i], true
}

// rowsWith returns the rows that have a cell for operand i.
func rowsWith(rows []Combo, inputs, i int, want Cell) []Combo {
	var fits []Combo
	for k := range rows {
		if c, ok := cellAt(&rows[k], inputs, i); ok && c == want {
			fits = append(fits, rows[k])
		}
	}
	return fits
}

// cellsAt lists what rows have for operand i, each once.
func cellsAt(rows []Combo, inputs, i int) string {
	var names []string
	for k := range rows {
		if c, ok := cellAt(&rows[k], inputs, i); ok && !slices.Contains(names, c.String()) {
			names = append(names, c.String())
		}
	}
	return orList(names)
}

// orList joins words as in "a, b or c".
func orList(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// beside lists the operands before operand i that are there, with their types.
func beside(sig *Signature, in, out []tensor.Desc, i int) string {
	var s []string
	for k := range i {
		d, ports, j := at(in, out, k), sig.In, k
		if k >= len(in) {
			ports, j = sig.Out, k-len(in)
		}
		if d.Empty() {
			continue
		}
		name := "input " + strconv.Itoa(j)
		if k >= len(in) {
			name = "output " + strconv.Itoa(j)
		}
		if j < len(ports) && ports[j].Name != "" {
			name = ports[j].Name
		}
		s = append(s, name+" "+Cell{d.DType, d.Format}.String())
	}
	return strings.Join(s, ", ")
}

func rowList(rows []Combo) string {
	s := make([]string, len(rows))
	for i := range rows {
		s[i] = rows[i].String()
	}
	return strings.Join(s, " ; ")
}

func cellsOf(descs []tensor.Desc) []Cell {
	cells := make([]Cell, len(descs))
	for i, d := range descs {
		cells[i] = Cell{d.DType, d.Format}
	}
	return cells
}
