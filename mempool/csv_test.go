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
		{"alignments", "id,lower,upper,size,alignment\na,0,3,2,64\nb,1,2,5,\n",
			Table{IDs: []string{a, b}, Items: []Item{{Size: 2, First: 0, Last: 2, Align: 64}, two[1]}}},
		{"fixed items", "id,lower,upper,size,offset,fixed,align\na,0,3,2,8,1,4\nb,1,2,5,0,0\n",
			Table{IDs: []string{a, b}, Items: []Item{{Size: 2, First: 0, Last: 2, Fixed: true, Offset: 8, Align: 4}, two[1]}, Offsets: []int64{8, 0}}},
		{"largest numbers", "id,lower,upper,size\na,-2305843009213693952,2305843009213693952,9223372036854775807\n",
			Table{IDs: []string{a}, Items: []Item{{Size: 1<<63 - 1, First: -MaxNode, Last: MaxNode - 1}}}},
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
			if c.name == "largest numbers" {
				_, err := p.Plan(got.Items, Options{Solver: Optimal, Align: 1})
				require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
				return
			}
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
		{"column twice", "id,lower,upper,size,Lower\na,0,3,2,1\n", []string{"line 1", "want one column lower, got another as column 5"}},
		{"alignment twice", "id,lower,upper,size,align,alignment\n", []string{"line 1", "want one column alignment"}},
		{"odd alignment", "id,lower,upper,size,align\na,0,3,2,24\n", []string{"line 2", "power of two", "got 24"}},
		{"negative alignment", "id,lower,upper,size,align\na,0,3,2,-8\n", []string{"line 2", "got -8"}},
		{"huge alignment", "id,lower,upper,size,align\na,0,3,2,4294967296\n", []string{"line 2", "at most 1073741824"}},
		{"fixed nowhere", header[:len(header)-1] + ",fixed\na,0,3,2,,1\n", []string{"line 2", "want an offset for a fixed item"}},
		{"fixed somehow", header[:len(header)-1] + ",fixed\na,0,3,2,8,yes\nb,0,3,2,8,2\n", []string{"line 2", `fixed: want an integer, got "yes"`, "line 3", "fixed: want 0 or 1, got 2"}},
		{"bad offset", header + "a,0,3,2,none\n", []string{"line 2", `offset: want an integer, got "none"`}},
		{"bare quote", header + "a\"b,0,3,2\n", []string{"line 2"}},
		{"id twice", header + "a,0,3,2\nb,0,3,2\n a ,1,2,2\n", []string{"line 4", `want an id of its own, got "a" of line 2`}},
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

	table.Items[0].Align, table.Items[1].Fixed = 8, true
	out.Reset()
	require.NoError(t, WriteCSV(&out, table, []int64{8, 0}))
	assert.Equal(t, "id,lower,upper,size,offset,align,fixed\na,-4,3,2,8,8,0\n\"x,y\",3,3,5,0,0,1\n", out.String())
	back, err = ReadCSV(strings.NewReader(out.String()))
	require.NoError(t, err)
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
	f.Add("id,lower,upper,size,offset,align,fixed\na,-5,3,2,64,64,1\nb,1,1,7,,,\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, status.ErrInvalidParam)
			return
		}
		var out strings.Builder
		offsets := make([]int64, len(table.Items))
		for i := range offsets {
			offsets[i] = table.Items[i].Offset
		}
		require.NoError(t, WriteCSV(&out, table, offsets))
		back, err := ReadCSV(strings.NewReader(out.String()))
		require.NoError(t, err, out.String())
		require.Equal(t, table.Items, back.Items)
		require.Equal(t, fmt.Sprintf("%q", table.IDs), fmt.Sprintf("%q", back.IDs))
	})
}
