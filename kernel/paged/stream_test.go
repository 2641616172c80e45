package paged

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/kernel/parts"
)

// TestStreamAsksForWhatIsUsed follows an item of each of several layouts: every row is
// asked for before it is used, and nothing else is. Nothing is where there is little.
func TestStreamAsksForWhatIsUsed(t *testing.T) {
	for _, headMajor := range []bool{false, true} {
		for _, bs := range []int64{8, 16, 128} {
			for _, context := range []int64{1, 16, 100, parts.Len, parts.Len + 17, 2*parts.Len + 100} {
				for _, cores := range []int{1, 2} {
					t.Run(fmt.Sprintf("headmajor=%v/block=%d/context=%d/cores=%d", headMajor, bs, context, cores), func(t *testing.T) {
						s := plain()
						s.params.Heads, s.params.KVHeads, s.params.HeadMajor = 8, 4, headMajor
						s.dk, s.dv, s.bs, s.tokens, s.contexts = 64, 32, bs, 1, []int64{context}
						s.columns = (context + bs - 1) / bs
						s.blocks = s.columns + 2
						follow(t, s, cores)
					})
				}
			}
		}
	}
}

func follow(t *testing.T, s setup, cores int) {
	pr := s.build()
	k, _, err := Attend.Select(&pr.p, kernel.Filter{})
	require.NoError(t, err)
	l := launchOn(t, k, pr.p, pr.in, cores)
	words := (*tiling)(unsafe.Pointer(unsafe.SliceData(l.args.Tiling)))
	if !words.Key.Direct || !words.Value.Direct {
		t.Skip("this machine reads no rows in place")
	}
	w := worker{t: words, key: pr.in[InKey], value: pr.in[InValue]}
	w.stream.runs = make([]vec.Ahead, 0, fetchRuns)
	w.spans = make([]vec.Span, 2*parts.Len)
	for i := range s.columns {
		w.table = append(w.table, int32(pr.at(InTables, i)))
	}
	w.context, w.heads, w.queryRows, w.group = s.contexts[0], words.HeadTile, 1, words.Group
	asked := map[uintptr]bool{}
	note := func() {
		for _, r := range w.stream.runs {
			for i := range r.Rows {
				for b := 0; b < r.Bytes; b += piece {
					asked[r.At+uintptr(i*r.Step+b)] = true
				}
			}
		}
	}
	n := parts.Count(w.context)
	w.stream.open(&w, 0, n)
	note()
	require.Equal(t, w.context*w.heads*(s.dk+s.dv)*4 <= fetchBytes, w.stream.little)
	if w.stream.little {
		var rows vec.Cache
		require.NoError(t, w.load(&rows, &words.Key, w.key, 0, w.context))
		require.EqualValues(t, w.context, rows.Rows(), "all at once")
		note()
		require.Empty(t, asked)
		return
	}
	used := 0
	for p := range n {
		first := p * parts.Len
		for _, c := range []struct {
			view *cacheView
			mem  []byte
		}{{&words.Key, w.key}, {&words.Value, w.value}} {
			for j := first; j < min(first+parts.Len, w.context); {
				var rows vec.Cache
				err := w.load(&rows, c.view, c.mem, j, min(parts.Len, w.context-first)-(j-first))
				require.NoError(t, err)
				used += inReach(t, &rows, asked)
				note()
				j += int64(rows.Rows())
			}
		}
	}
	assert.Equal(t, used, len(asked), "pieces asked for")
}

// piece is a size that rows are a multiple of.
const piece = 32

// inReach counts the pieces of rows, all of which have been asked for.
func inReach(t *testing.T, c *vec.Cache, asked map[uintptr]bool) (pieces int) {
	size := int(unsafe.Sizeof(float32(0)))
	for h := range c.Heads {
		for _, s := range c.Spans {
			for r := range s.Rows {
				at := vec.Address(c.Mem, c.Elem, int64(s.At/size+h*c.Head+r*c.Step))
				for b := 0; b < c.Width*size; b += piece {
					if !asked[at+uintptr(b)] {
						require.Fail(t, "not asked for", "head %d, row %d, byte %d", h, r, b)
					}
					pieces++
				}
			}
		}
	}
	return pieces
}
