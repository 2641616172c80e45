package operation

import (
	"fmt"
	"strings"

	"goatb/tensor"
)

// Cell is one column of a combination: an element type and a layout.
type Cell struct {
	DType  tensor.DType
	Format tensor.Format
}

// String gives "f16" or "f16@fractal_nz".
func (c Cell) String() string {
	if c.Format == tensor.ND {
		return c.DType.String()
	}
	return c.DType.String() + "@" + c.Format.String()
}

// Combo is one row of a dtype and layout table.
type Combo struct{ In, Out []Cell }

// String gives "f16,f16->f16".
func (c Combo) String() string { return cellList(c.In) + "->" + cellList(c.Out) }

func cellList(cells []Cell) string {
	s := make([]string, len(cells))
	for i, c := range cells {
		s[i] = c.String()
	}
	return strings.Join(s, ",")
}

// ParseCombos reads combinations like "f16,f16@fractal_nz->f16 ; f32,f32->f32".
// Upper-case letters stand for types listed after a bar, each letter for the
// same type throughout a row: "T,T,I->T | T=f32,f16 I=int32,int64" is every
// choice of T and I. A leading or trailing blank means nothing.
func ParseCombos(text string) ([]Combo, error) {
	rows, vars, _ := strings.Cut(text, "|")
	choices, err := parseVars(vars)
	if err != nil {
		return nil, err
	}
	var out []Combo
	for _, row := range strings.Split(rows, ";") {
		if row = strings.TrimSpace(row); row == "" {
			continue
		}
		for _, r := range expand(row, choices) {
			c, err := parseCombo(r)
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
	}
	return out, nil
}

// typeVar is a letter with the types it stands for.
type typeVar struct {
	letter string
	types  []string
}

func parseVars(text string) ([]typeVar, error) {
	var vars []typeVar
	for _, f := range strings.Fields(text) {
		letter, types, ok := strings.Cut(f, "=")
		if !ok || len(letter) != 1 {
			return nil, fmt.Errorf("combination variable %q, want a letter, = and types", f)
		}
		vars = append(vars, typeVar{letter, strings.Split(types, ",")})
	}
	return vars, nil
}

// expand replaces the variables that a row uses by every choice of types.
func expand(row string, vars []typeVar) []string {
	rows := []string{row}
	for _, v := range vars {
		if !strings.Contains(row, v.letter) {
			continue
		}
		var next []string
		for _, r := range rows {
			for _, t := range v.types {
				next = append(next, strings.ReplaceAll(r, v.letter, t))
			}
		}
		rows = next
	}
	return rows
}

func parseCombo(row string) (Combo, error) {
	in, out, ok := strings.Cut(row, "->")
	if !ok {
		return Combo{}, fmt.Errorf("combination %q has no arrow", row)
	}
	var c Combo
	var err error
	if c.In, err = parseCells(in); err != nil {
		return Combo{}, err
	}
	c.Out, err = parseCells(out)
	return c, err
}

func parseCells(text string) ([]Cell, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, nil
	}
	var cells []Cell
	for _, f := range strings.Split(text, ",") {
		name, format, labelled := strings.Cut(strings.TrimSpace(f), "@")
		c := Cell{}
		var err error
		if c.DType, err = tensor.ParseDType(name); err != nil {
			return nil, err
		}
		if labelled {
			if c.Format, err = tensor.ParseFormat(format); err != nil {
				return nil, err
			}
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// matches reports whether the descriptors fit the combination; absent tensors
// fit everything. Out is not looked at when it is nil.
func (c *Combo) matches(in, out []tensor.Desc) bool {
	return cellsMatch(c.In, in) && (out == nil || cellsMatch(c.Out, out))
}

func cellsMatch(cells []Cell, descs []tensor.Desc) bool {
	if len(cells) != len(descs) {
		return false
	}
	for i := range descs {
		if d := &descs[i]; !d.Empty() && (d.DType != cells[i].DType || d.Format != cells[i].Format) {
			return false
		}
	}
	return true
}
