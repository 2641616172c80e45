package attention

import (
	"goatb/kernel/parts"
	"goatb/status"
)

// sequence is what a tiling tells about one sequence: element offsets of its
// first rows and how many there are.
type sequence struct {
	// Query and Out locate query row 0 of head 0, Key and Value key row 0.
	Query, Out, Key, Value int64
	// NewRow is the first of its rows in the new keys.
	NewRow int64
	// Rows is the number of output rows, Live of those that are queries: the
	// others are zeros. Keys is the number of keys.
	Rows, Live, Keys int64
	// Index is its number.
	Index int64
}

// sequenceWords is the number of words of a sequence in the tail, which holds
// one more sequence than the batch: rows that belong to none.
const sequenceWords = 9

func readSequence(tail []int64, i int64) sequence {
	w := tail[i*sequenceWords:][:sequenceWords]
	return sequence{w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8]}
}

func (s *sequence) write(tail []int64, i int64) {
	w := tail[i*sequenceWords:][:sequenceWords]
	w[0], w[1], w[2], w[3], w[4] = s.Query, s.Out, s.Key, s.Value, s.NewRow
	w[5], w[6], w[7], w[8] = s.Rows, s.Live, s.Keys, s.Index
}

// position returns the position of query row r among the keys.
func (s *sequence) position(r int64) int64 { return s.Keys - s.Live + r }

// visible returns the keys [lo, hi) that query row r sees.
func (s *sequence) visible(a *Params, r int64) (lo, hi int64) {
	if r >= s.Live {
		return 0, 0
	}
	pos := s.position(r)
	hi = s.Keys
	if a.Causal {
		hi = min(hi, pos+1)
	}
	if a.Window > 0 {
		lo = max(pos-a.Window+1, 0)
	}
	return lo, max(hi, lo)
}

// span returns the keys that any of the query rows from `from` to `to` sees.
func (s *sequence) span(a *Params, from, to int64) (lo, hi int64) {
	if from >= s.Live {
		return 0, 0
	}
	lo, _ = s.visible(a, from)
	_, hi = s.visible(a, min(to, s.Live-1))
	return lo, hi
}

// parts returns the first of the parts that any row sees and how many there
// are.
func (s *sequence) parts(a *Params) (first, n int64) {
	lo, hi := s.span(a, 0, s.Live-1)
	if lo >= hi {
		return 0, 0
	}
	first = lo / parts.Len
	return first, parts.Count(hi) - first
}

// lengths are the host values of one sequence.
type lengths struct {
	rows, keys int64
	run        bool
}

// cursor walks the sequences of a call and checks their host values.
type cursor struct {
	a      *Params
	values [][]int64
	layer  int64
	// rows and keys count those of the sequences before.
	rows, keys int64
}

// names of the host values, for errors.
var (
	rowsName = [...]string{Tokens: "seqLen", Cache: "seqLen", Paged: "qSeqLen"}
	keysName = [...]string{Tokens: "seqLen", Cache: "tokenOffset", Paged: "kvSeqLen"}
)

// CheckValues checks the host values of a call: every length against the
// operands, the mask and the cache. Errors are ErrInvalidParam, or
// ErrInvalidTensorDim for a mask or factors that are too small.
func (a *Params) CheckValues(values [][]int64) error {
	c, err := newCursor(a, values)
	if err != nil {
		return err
	}
	for i := range a.Batch {
		if _, err := c.next(i); err != nil {
			return err
		}
	}
	return nil
}

func newCursor(a *Params, values [][]int64) (cursor, error) {
	c := cursor{a: a, values: values}
	want := [...]int{Tokens: 1, Cache: 3, Paged: 2}[a.Source]
	if a.Status {
		want++
	}
	if len(values) != want {
		return c, status.Errorf(status.ErrInvalidParam, "want %d lists of host values, got %d", want, len(values))
	}
	for i, v := range values {
		n := int64(len(v))
		double := a.Source == Tokens && n == 2*a.Batch
		if layer := a.Source == Cache && i == 2; n != a.Batch && !double && !layer {
			return c, status.Errorf(status.ErrInvalidParam, "want %d host values, got %d", a.Batch, n)
		}
	}
	if a.Source == Cache && a.Layers > 0 {
		if len(values[2]) != 1 || values[2][0] < 0 || values[2][0] >= a.Layers {
			return c, status.Errorf(status.ErrInvalidParam, "layerId: want 0 to %d, the cache has %d layers, got %v", a.Layers-1, a.Layers, values[2])
		}
		c.layer = values[2][0]
	}
	return c, nil
}

// lengths reads the values of sequence i.
func (c *cursor) lengths(i int64) lengths {
	v := c.values
	switch c.a.Source {
	case Cache:
		return lengths{v[1][i], v[0][i], !c.a.Status || v[3][i] != 0}
	case Paged:
		return lengths{v[0][i], v[1][i], true}
	}
	l := lengths{v[0][i], v[0][i], true}
	if n := int64(len(v[0])); n == 2*c.a.Batch {
		l.keys = v[0][c.a.Batch+i]
	}
	return l
}

// next checks sequence i and locates it.
func (c *cursor) next(i int64) (sequence, error) {
	a, l := c.a, c.lengths(i)
	if err := c.check(i, l); err != nil {
		return sequence{}, err
	}
	s := sequence{Index: i, Rows: l.rows, Live: l.rows, Keys: l.keys, NewRow: c.rows}
	if a.Query.Batch == 0 {
		s.Query, s.Out = c.rows*a.Query.Row, c.rows*a.Out.Row
	} else {
		s.Query, s.Out, s.Rows = i*a.Query.Batch, i*a.Out.Batch, a.Rows
	}
	switch {
	case a.Source == Paged:
	case a.Source == Tokens && a.Key.Batch == 0:
		s.Key, s.Value = c.keys*a.Key.Row, c.keys*a.Value.Row
	default:
		s.Key = i*a.Key.Batch + c.layer*a.Key.Layer
		s.Value = i*a.Value.Batch + c.layer*a.Value.Layer
	}
	if !l.run {
		s.Live, s.Keys = 0, 0
	}
	c.rows, c.keys = c.rows+l.rows, c.keys+l.keys
	return s, nil
}

// rest is the sequence of the rows behind the last one.
func (c *cursor) rest() sequence {
	a := c.a
	s := sequence{Index: a.Batch}
	if a.Query.Batch == 0 {
		s.Query, s.Out, s.Rows = c.rows*a.Query.Row, c.rows*a.Out.Row, a.Rows-c.rows
	}
	return s
}

// check checks the lengths of sequence i.
func (c *cursor) check(i int64, l lengths) error {
	a := c.a
	name := rowsName[a.Source]
	free := a.Rows
	if a.Query.Batch == 0 {
		free -= c.rows
	}
	if l.rows < 0 || l.rows > free {
		return status.Errorf(status.ErrInvalidParam, "%s of sequence %d: want 0 to %d, the rows that the query has for it, got %d", name, i, free, l.rows)
	}
	if !l.run {
		return nil
	}
	if err := c.checkKeys(i, l); err != nil {
		return err
	}
	if a.Bias == MaskBias {
		m := &a.Mask
		if (m.Row != 0 && l.rows > m.Rows) || (l.rows > 0 && l.keys > m.Cols) {
			return status.Errorf(status.ErrInvalidTensorDim, "mask: want at least %d rows and %d columns for sequence %d, got %dx%d", l.rows, l.keys, i, m.Rows, m.Cols)
		}
	}
	if a.Factor == RowFactor && l.rows > 0 && l.keys > a.FactorLen {
		return status.Errorf(status.ErrInvalidTensorDim, "logN: want at least %d factors for sequence %d, got %d", l.keys, i, a.FactorLen)
	}
	return nil
}

// checkKeys checks the number of keys of sequence i against what holds them.
func (c *cursor) checkKeys(i int64, l lengths) error {
	a, name := c.a, keysName[c.a.Source]
	if a.Source != Tokens && l.keys < l.rows {
		return status.Errorf(status.ErrInvalidParam, "%s of sequence %d: want at least its %d query rows, got %d", name, i, l.rows, l.keys)
	}
	top := a.Slots
	switch {
	case a.Ring:
		return c.checkRing(i, l)
	case a.Source == Paged:
		top = a.Slots * a.Columns
	case a.Key.Batch == 0:
		top -= c.keys
	}
	if l.keys < 0 || l.keys > top {
		return status.Errorf(status.ErrInvalidParam, "%s of sequence %d: want 0 to %d, the keys that there is room for, got %d", name, i, top, l.keys)
	}
	return nil
}

// checkRing checks that the keys which the first query row's window reaches
// are still in the ring.
func (c *cursor) checkRing(i int64, l lengths) error {
	a := c.a
	held, first := l.keys, max(l.keys-l.rows-a.Window+1, 0)
	if a.NewKeys {
		held -= l.rows
	}
	if l.rows > 0 && first < held && held-first > a.Slots {
		return status.Errorf(status.ErrInvalidParam, "tokenOffset of sequence %d: %d keys with a window of %d and %d query rows need a ring of at least %d slots, got %d",
			i, l.keys, a.Window, l.rows, held-first, a.Slots)
	}
	return nil
}
