package mempool

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestReadCSV(t *testing.T) {
	const a, b = "a", "b"
	two := []Item{{Size: 2, First: 0, Last: 2}, {Size: 5, First: 1, Last: 1}}
	for _, c := range []struct {
		name, text string
		want       Table
	}{
		{"plain", "id,lower,upper,size\na,0,3,2\nb,1,2,5\n", Table{IDs: []string{a, b}, Items: two}},
		{"no newline at the end, blank lines, crlf", "id,lower,upper,size\r\na,0,3,2\r\n\r\nb,1,2,5", Table{IDs: []string{a, b}, Items: two}},
		{"other order, case, blanks and a byte order mark", "\ufeffSIZE, Upper ,lower,id\n2, 3,0 ,a\n5,2,1, b\n", Table{IDs: []string{a, b}, Items: two}},
		{"more columns, in header and rows", "id,lower,upper,size,kind,note\na,0,3,2,x\nb,1,2,5,y,z,z,z\n", Table{IDs: []string{a, b}, Items: two}},
		{"offsets", "id,lower,upper,size,offset\na,0,3,2,0\nb,1,2,5,-1\n", Table{IDs: []string{a, b}, Items: two, Offsets: []int64{0, -1}}},
		{"some offsets", "id,lower,upper,size,offset\na,0,3,2,7\nb,1,2,5,\n", Table{IDs: []string{a, b}, Items: two}},
		{"offset left out, then given", "id,lower,upper,size,offset\na,0,3,2\nb,1,2,5,9\n", Table{IDs: []string{a, b}, Items: two}},
		{"no rows", "id,lower,upper,size\n", Table{}},
		{"negative and empty lifetimes, empty size", "id,lower,upper,size\na,-7,-3,2\nb,4,4,9\nc,0,1,0\n",
			Table{IDs: []string{a, b, "c"}, Items: []Item{{Size: 2, First: -7, Last: -4}, {Size: 9, First: 4, Last: 3}, {Size: 0, First: 0, Last: 0}}}},
		{"quoted id", "id,lower,upper,size\n\"x, \"\"y\"\"\",0,1,1\n", Table{IDs: []string{`x, "y"`}, Items: []Item{{Size: 1}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadCSV(strings.NewReader(c.text))
			require.NoError(t, err)
			assert.Equal(t, c.want.IDs, got.IDs)
			assert.Equal(t, c.want.Items, got.Items)
			if c.want.Offsets == nil && len(got.Items) > 0 {
				assert.Nil(t, got.Offsets)
			} else {
				assert.ElementsMatch(t, c.want.Offsets, got.Offsets)
			}
			var p Planner
			mustPlan(t, &p, got.Items, Options{Solver: Optimal, Align: 1})
		})
	}
}

func TestReadCSVRefuses(t *testing.T) {
	const header = "id,lower,upper,size,offset\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"want a header"}},
		{"no header", "0,0,3,2\n", []string{"line 1", `"0,0,3,2"`}},
		{"column missing", "id,lower,size\n0,0,3\n", []string{"line 1", "upper"}},
		{"short row", header + "a,0,3\n", []string{"line 2", "at least 4 columns, got 3"}},
		{"no number", header + "a,0,3,2\nb,x,3,2\n", []string{"line 3", `lower: want an integer, got "x"`}},
		{"fraction", header + "a,0,3,2.5\n", []string{`size: want an integer, got "2.5"`}},
		{"empty field", header + "a,0,,2\n", []string{`upper: want an integer, got ""`}},
		{"too large", header + "a,0,3,9223372036854775808\n", []string{"line 2", "size: want an integer"}},
		{"backwards", header + "a,5,4,2\n", []string{"line 2", "got 5 and 4"}},
		{"negative size", header + "a,0,3,-2\n", []string{"line 2", "got -2"}},
		{"lifetime too far", header + "a,0,9223372036854775807,2\n", []string{"line 2", "2^61"}},
		{"bad offset", header + "a,0,3,2,none\n", []string{"line 2", `offset: want an integer, got "none"`}},
		{"bare quote", header + "a\"b,0,3,2\n", []string{"line 2"}},
		{"several", header + "\na,5,4,2\nb,0,1,1\n\nc,z,q,1\n", []string{"line 3", "line 6", `lower: want an integer, got "z"`, `upper: want an integer, got "q"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ReadCSV(strings.NewReader(c.text))
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.Zero(t, got)
			for _, want := range c.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
	_, err := ReadCSV(strings.NewReader(header + strings.Repeat("a,5,4,2\n", 1000)))
	require.Error(t, err)
	assert.Equal(t, badRowsMax, strings.Count(err.Error(), "got 5 and 4"), "the list is cut")
}

func TestWriteCSV(t *testing.T) {
	table := Table{IDs: []string{"a", "x,y"}, Items: []Item{{Size: 2, First: -4, Last: 2}, {Size: 5, First: 3, Last: 2}}}
	var out strings.Builder
	require.NoError(t, WriteCSV(&out, table, []int64{8, 0}))
	assert.Equal(t, "id,lower,upper,size,offset\na,-4,3,2,8\n\"x,y\",3,3,5,0\n", out.String())

	back, err := ReadCSV(strings.NewReader(out.String()))
	require.NoError(t, err)
	table.Offsets = []int64{8, 0}
	assert.Equal(t, table, back)

	require.ErrorIs(t, WriteCSV(&out, table, []int64{8}), status.ErrInvalidParam)
	require.ErrorIs(t, WriteCSV(&out, Table{Items: table.Items}, []int64{8, 0}), status.ErrInvalidParam)
	assert.ErrorIs(t, WriteCSV(failingWriter{}, table, []int64{8, 0}), errDisk)
}

var errDisk = errors.New("disk is full")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errDisk }

func FuzzReadCSV(f *testing.F) {
	f.Add("id,lower,upper,size\na,0,3,2\n")
	f.Add("id,lower,upper,size,offset\na,-5,3,2,0\nb,1,1,7,x\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, status.ErrInvalidParam)
			return
		}
		var out strings.Builder
		require.NoError(t, WriteCSV(&out, table, make([]int64, len(table.Items))))
		back, err := ReadCSV(strings.NewReader(out.String()))
		require.NoError(t, err, out.String())
		require.Equal(t, table.Items, back.Items)
		require.Equal(t, fmt.Sprintf("%q", table.IDs), fmt.Sprintf("%q", back.IDs))
	})
}
