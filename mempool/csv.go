package mempool

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"goatb/status"
)

// Table is a planning problem as it stands in a file.
type Table struct {
	// IDs and Items hold one entry per row.
	IDs   []string
	Items []Item
	// Offsets is the plan that the file came with, nil when it has no offset
	// column or leaves some offset out. It says where items were put, not where
	// they must be: that is for the column fixed to say.
	Offsets []int64
}

// badRowsMax is the number of bad rows that one error lists.
const badRowsMax = 10

// ReadCSV reads a problem. The first row names the columns: id, lower, upper
// and size, in any order; other columns but those below are ignored. A lifetime
// is half open: an item is live from node lower to node upper-1. Lifetimes may be
// negative; lower equal to upper is an item that is never live. Sizes are in
// bytes, or in any unit when the plan is made with Options.Align 1.
//
// Columns that may be there, or empty in some rows: offset, where the item was
// put by an earlier plan; fixed, 1 for an item that has to lie at its offset and
// 0 else; align (or alignment), the alignment of the item.
//
// The error is ErrInvalidParam and lists bad rows by line: too few columns, no
// number, an id that is there twice, a negative size, upper below lower, an alignment that is no power of
// two, a fixed item without an offset, a column that is there twice.
func ReadCSV(r io.Reader) (Table, error) {
	if err := status.Given("read csv", "r", r); err != nil {
		return Table{}, err
	}
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	in.TrimLeadingSpace = true
	in.ReuseRecord = true
	var cols columns
	header, err := in.Read()
	if err == nil {
		cols, err = readHeader(header)
	} else if errors.Is(err, io.EOF) {
		err = errors.New("want a header id,lower,upper,size, got nothing")
	}
	if err != nil {
		return Table{}, status.Errorf(status.ErrInvalidParam, "csv: %w", err)
	}
	t := Table{Offsets: []int64{}}
	var bad []error
	lines := map[string]int{} // those of the ids
	for len(bad) < badRowsMax {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			bad = append(bad, err)
			break
		}
		line, _ := in.FieldPos(0)
		if err := t.add(cols, row); err != nil {
			bad = append(bad, fmt.Errorf("line %d: %w", line, err))
			continue
		}
		id := t.IDs[len(t.IDs)-1]
		if first, twice := lines[id]; twice {
			bad = append(bad, fmt.Errorf("line %d: want an id of its own, got %q of line %d", line, id, first))
			continue
		}
		lines[id] = line
	}
	if len(bad) > 0 {
		return Table{}, status.Errorf(status.ErrInvalidParam, "csv: %w", errors.Join(bad...))
	}
	return t, nil
}

// columns holds the place of each column, -1 for none.
type columns struct{ id, lower, upper, size, offset, fixed, align int }

func readHeader(row []string) (columns, error) {
	c := columns{-1, -1, -1, -1, -1, -1, -1}
	places := map[string]*int{
		"id": &c.id, "lower": &c.lower, "upper": &c.upper, "size": &c.size,
		"offset": &c.offset, "fixed": &c.fixed, "align": &c.align, "alignment": &c.align,
	}
	for i, field := range row {
		name := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(field, "\ufeff")))
		p := places[name]
		if p == nil {
			continue
		}
		if *p >= 0 {
			return c, fmt.Errorf("line 1: want one column %s, got another as column %d", name, i+1)
		}
		*p = i
	}
	if min(c.id, c.lower, c.upper, c.size) < 0 {
		return c, fmt.Errorf("line 1: want a header with id, lower, upper and size, got %q", strings.Join(row, ","))
	}
	return c, nil
}

func (t *Table) add(c columns, row []string) error {
	if need := max(c.id, c.lower, c.upper, c.size) + 1; len(row) < need {
		return fmt.Errorf("want at least %d columns, got %d", need, len(row))
	}
	lower, err1 := number("lower", row[c.lower])
	upper, err2 := number("upper", row[c.upper])
	size, err3 := number("size", row[c.size])
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	switch {
	case upper < lower:
		return fmt.Errorf("want an upper end of at least the lower one, got %d and %d", lower, upper)
	case lower < -MaxNode || upper > MaxNode:
		return fmt.Errorf("want a lifetime within -2^61 to 2^61, got %d to %d", lower, upper)
	case size < 0:
		return fmt.Errorf("want a size of at least 0, got %d", size)
	}
	it := Item{Size: size, First: lower, Last: upper - 1}
	offset, there, err1 := optional("offset", row, c.offset)
	align, _, err2 := optional("align", row, c.align)
	fixed, _, err3 := optional("fixed", row, c.fixed)
	switch err := errors.Join(err1, err2, err3); {
	case err != nil:
		return err
	case align < 0 || align > MaxAlign || align&(align-1) != 0:
		return fmt.Errorf("want an alignment that is a power of two of at most %d, got %d", MaxAlign, align)
	case fixed != 0 && fixed != 1:
		return fmt.Errorf("fixed: want 0 or 1, got %d", fixed)
	case fixed == 1 && !there:
		return errors.New("want an offset for a fixed item, got none")
	}
	it.Align = align
	if fixed == 1 {
		it.Fixed, it.Offset = true, offset
	}
	if !there {
		t.Offsets = nil
	} else if t.Offsets != nil {
		t.Offsets = append(t.Offsets, offset)
	}
	t.IDs = append(t.IDs, strings.Clone(strings.TrimSpace(row[c.id])))
	t.Items = append(t.Items, it)
	return nil
}

// optional reads a number that may be left out; there says that it is not.
func optional(name string, row []string, column int) (v int64, there bool, err error) {
	if column < 0 || column >= len(row) || strings.TrimSpace(row[column]) == "" {
		return 0, false, nil
	}
	v, err = number(name, row[column])
	return v, true, err
}

func number(name, text string) (int64, error) {
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: want an integer, got %q", name, text)
	}
	return v, nil
}

// WriteCSV writes a problem with a plan as id,lower,upper,size,offset, which
// ReadCSV reads; columns align and fixed follow where some item needs them.
// Errors: ErrInvalidParam when the counts differ, and those of w.
func WriteCSV(w io.Writer, t Table, offsets []int64) error {
	if err := status.Given("write csv", "w", w); err != nil {
		return err
	}
	if len(t.IDs) != len(t.Items) || len(offsets) != len(t.Items) {
		return status.Errorf(status.ErrInvalidParam, "csv: want an id and an offset for each of %d items, got %d and %d", len(t.Items), len(t.IDs), len(offsets))
	}
	out := csv.NewWriter(w)
	row := []string{"id", "lower", "upper", "size", "offset"}
	for i := range t.Items {
		if t.Items[i].Align != 0 || t.Items[i].Fixed {
			row = append(row, "align", "fixed")
			break
		}
	}
	err := out.Write(row)
	for i := range t.Items {
		if err != nil {
			break
		}
		it := &t.Items[i]
		row[0] = t.IDs[i]
		fixed := int64(0)
		if it.Fixed {
			fixed = 1
		}
		for k, v := range []int64{it.First, it.Last + 1, it.Size, offsets[i], it.Align, fixed}[:len(row)-1] {
			row[k+1] = strconv.FormatInt(v, 10)
		}
		err = out.Write(row)
	}
	out.Flush()
	return errors.Join(err, out.Error())
}
