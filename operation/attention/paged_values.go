package attention

import (
	"goatb/kernel/paged"
	"goatb/operation"
	"goatb/status"
)

// CheckValues checks the lengths against the block tables, the mask and the
// query rows.
func (p PagedAttention) CheckValues(q *operation.Query) error {
	x := p.ports()
	contexts, ok := q.Values(x.contextLens)
	if !ok {
		return nil
	}
	var queryLens, statuses []int64
	if x.queryLens >= 0 {
		queryLens, _ = q.Values(x.queryLens)
	}
	if x.runStatus >= 0 {
		statuses, _ = q.Values(x.runStatus)
	}
	rows := q.In[x.query].Dim(0)
	for s, c := range contexts {
		if statuses != nil && !p.runs(statuses, s, len(contexts)) {
			continue
		}
		if err := p.checkContext(q, &x, s, c); err != nil {
			return err
		}
		if queryLens == nil {
			continue
		}
		n := queryLens[s]
		if n < 0 || n > rows {
			return q.BadIn(status.ErrInvalidParam, x.queryLens, "sequence %d: want 0 to %d query rows of %d in all, got %d", s, rows, q.In[x.query].Dim(0), n)
		}
		rows -= n
		if p.maskMode() == paged.ByPosition && c > 0 {
			if err := p.checkPositions(q, &x, s, c, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// runs reports whether sequence s of count runs; statuses may be by query row
// where contexts are by head.
func (p PagedAttention) runs(statuses []int64, s, count int) bool {
	if p.compress() && len(statuses) != count {
		s /= int(p.kvHeads())
	}
	return s < len(statuses) && statuses[s] != 0
}

func (p PagedAttention) checkContext(q *operation.Query, x *pagedPorts, s int, c int64) error {
	if c < 0 {
		return q.BadIn(status.ErrInvalidParam, x.contextLens, "sequence %d: want a length of at least 0, got %d", s, c)
	}
	bs, columns := q.In[x.key].Dim(p.slotAxis()), q.In[x.tables].Dim(1)
	if c > paged.Capacity(columns, bs) {
		return q.BadIn(status.ErrInvalidParam, x.contextLens, "sequence %d: length %d needs %d blocks of %d, its table row has %d", s, c, (c+bs-1)/bs, bs, columns)
	}
	if x.mask >= 0 && c > q.In[x.mask].Dim(-1) {
		return q.BadIn(status.ErrInvalidParam, x.mask, "sequence %d: length %d needs as many columns, the mask %s has %d", s, c, q.In[x.mask].Shape, q.In[x.mask].Dim(-1))
	}
	return nil
}

// checkPositions checks the mask's rows where it has one per position.
func (p PagedAttention) checkPositions(q *operation.Query, x *pagedPorts, s int, c, n int64) error {
	m := &q.In[x.mask]
	if m.Dim(-2) == 1 && m.Rank() == 3 {
		return nil
	}
	if n > c {
		return q.BadIn(status.ErrInvalidParam, x.queryLens, "sequence %d: want at most %d query rows for its length, got %d", s, c, n)
	}
	if n > 0 && c > m.Dim(-2) {
		return q.BadIn(status.ErrInvalidParam, x.mask, "sequence %d: length %d needs as many rows, the mask %s has %d", s, c, m.Shape, m.Dim(-2))
	}
	return nil
}
