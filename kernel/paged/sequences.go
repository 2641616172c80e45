package paged

import (
	"goatb/kernel"
	"goatb/status"
)

// sequence is what a tiling tells about one sequence.
type sequence struct {
	// Context is the number of positions that its rows attend to, 0 for a
	// sequence that does not run.
	Context int64
	// Row is its first query row, Rows their number.
	Row, Rows int64
	// End is the number of items up to and with this sequence.
	End int64
}

// sequenceWords is the number of tail words of a sequence.
const sequenceWords = 4

// tailWords returns the words of a tiling's tail: the sequences, one more for
// query rows that belong to none, and the first item of every block.
func tailWords(p *kernel.Problem, g *geometry) int {
	return int(g.Sequences+1)*sequenceWords + kernel.MostEvenBlocks(p.Machine) + 1
}

func readSequence(tail []int64, s int64) sequence {
	w := tail[s*sequenceWords:][:sequenceWords]
	return sequence{w[0], w[1], w[2], w[3]}
}

func writeSequence(tail []int64, s int64, q sequence) {
	w := tail[s*sequenceWords:][:sequenceWords]
	w[0], w[1], w[2], w[3] = q.Context, q.Row, q.Rows, q.End
}

// blockItems returns the items [lo, hi) of the blocks [first, end).
func blockItems(tail []int64, sequences int64, first, end int) (lo, hi int64) {
	w := tail[(sequences+1)*sequenceWords:]
	return w[first], w[end]
}

// fillSequences writes contexts and query rows to the tail and returns the
// largest number of rows of a sequence. It checks every value, since the
// kernels index with them.
func (g *geometry) fillSequences(p *kernel.Problem, a Params, tail []int64) (int64, error) {
	var queryLens, statuses []int64
	if a.QueryLens {
		queryLens = p.Values[1]
	}
	if a.RunStatus {
		statuses = p.Values[len(p.Values)-1]
	}
	row, most := int64(0), int64(0)
	for s := range g.Sequences {
		q := sequence{Context: p.Values[0][s], Row: row, Rows: 1}
		switch {
		case queryLens != nil:
			q.Rows = queryLens[s]
		case g.PerHead:
			q.Row = s / g.KVHeads
		case row >= g.Tokens:
			q.Rows = 0
		}
		if statuses != nil && !running(statuses, s, g) {
			q.Context = 0
		}
		if err := g.checkSequence(s, &q); err != nil {
			return 0, err
		}
		writeSequence(tail, s, q)
		row, most = row+q.Rows, max(most, q.Rows)
	}
	if g.PerHead {
		row = g.Tokens
	}
	writeSequence(tail, g.Sequences, sequence{Row: row, Rows: g.Tokens - row})
	return max(most, g.Tokens-row), nil
}

// running tells whether sequence s runs. With a context per head the statuses
// may be by sequence or by head.
func running(statuses []int64, s int64, g *geometry) bool {
	if g.PerHead && int64(len(statuses)) != g.Sequences {
		s /= g.KVHeads
	}
	return s < int64(len(statuses)) && statuses[s] != 0
}

func (g *geometry) checkSequence(s int64, q *sequence) error {
	if q.Context < 0 || q.Context > g.MaxContext {
		return status.Errorf(status.ErrInvalidParam, "sequence %d: want a context length from 0 to %d, got %d", s, g.MaxContext, q.Context)
	}
	if q.Rows < 0 || q.Rows > g.Tokens-q.Row {
		return status.Errorf(status.ErrInvalidParam, "sequence %d: want 0 to %d query rows, got %d", s, g.Tokens-q.Row, q.Rows)
	}
	if m := g.Mask.Positions; m > 0 && q.Context > 0 && (q.Context > m || q.Rows > q.Context) {
		return status.Errorf(status.ErrInvalidParam, "sequence %d: %d query rows in a context of %d need rows of a mask that has %d", s, q.Rows, q.Context, m)
	}
	return nil
}
