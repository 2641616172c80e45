package mempool

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// drawn is what a reader of the picture sees.
type drawn struct {
	titles []string // tooltips of items
	texts  string
	rects  []map[string]string
}

func parseSVG(t *testing.T, text string) drawn {
	t.Helper()
	var out drawn
	var inside string
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		switch tok := tok.(type) {
		case xml.StartElement:
			inside = tok.Name.Local
			if inside == "rect" {
				attrs := map[string]string{}
				for _, a := range tok.Attr {
					attrs[a.Name.Local] = a.Value
				}
				out.rects = append(out.rects, attrs)
			}
		case xml.CharData:
			switch inside {
			case "title":
				out.titles = append(out.titles, string(tok))
			case "text":
				out.texts += string(tok) + "\n"
			}
		case xml.EndElement:
			inside = ""
		}
	}
}

func TestWriteSVG(t *testing.T) {
	table := Table{
		IDs:   []string{"q<&>", "scores", "empty", "never"},
		Items: []Item{{Size: 1000, First: 0, Last: 5}, {Size: 500, First: 3, Last: 9}, {Size: 0, First: 0, Last: 9}, {Size: 9, First: 4, Last: 3}},
	}
	var p Planner
	r, err := p.Plan(table.Items, Options{Solver: Optimal, Align: 4})
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, WriteSVG(&out, table, r))
	got := parseSVG(t, out.String())
	assert.Equal(t, []string{"q<&>: 1000 bytes at 0, nodes 0 to 5", "scores: 500 bytes at 1000, nodes 3 to 9"}, got.titles)
	for _, want := range []string{"4 items, arena 1500 bytes, lower bound 1500 bytes (1.0000 of it), by largest-first, optimal", "\nq<&>\n", "\nscores\n", "lower bound 1500", "peak at node 3", "offset in bytes", "node"} {
		assert.Contains(t, got.texts, want)
	}
	require.Len(t, got.rects, 3, "the paper and two items")
	px := func(i int, name string) float64 {
		v, err := strconv.ParseFloat(got.rects[i][name], 64)
		require.NoError(t, err)
		return v
	}
	assert.InDelta(t, px(1, "y"), px(2, "y")+px(2, "height"), 0.02, "the second lies on the first")
	assert.InDelta(t, 2*px(2, "height"), px(1, "height"), 0.02)
	assert.InDelta(t, px(1, "width")/6, px(2, "width")/7, 0.01, "six and seven nodes")
	assert.InDelta(t, px(1, "x")+px(1, "width")/2, px(2, "x"), 0.02)
}

func TestWriteSVGOfNothing(t *testing.T) {
	var p Planner
	r, err := p.Plan(nil, DefaultOptions())
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, WriteSVG(&out, Table{}, r))
	assert.Len(t, parseSVG(t, out.String()).rects, 1)
	assert.NotContains(t, out.String(), "NaN")
	require.ErrorIs(t, WriteSVG(&out, Table{IDs: []string{"a"}, Items: []Item{{}}}, r), status.ErrInvalidParam)
	assert.ErrorIs(t, WriteSVG(failingWriter{}, Table{}, r), errDisk)
}
