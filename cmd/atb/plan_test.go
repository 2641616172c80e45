package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
	"goatb/mempool"
)

// planFiles plans files with bounds in nodes and returns the report without
// times.
func planFiles(t *testing.T, args ...string) planReport {
	t.Helper()
	var r planReport
	strictJSON(t, fine(t, append([]string{"plan", "--json"}, args...)...), &r)
	for i := range r.Plans {
		r.Plans[i].TimeNs = 0
	}
	return r
}

// Two runs over all shared instances give identical plans, which are valid and
// read back as they were written.
func TestPlanSharedInstances(t *testing.T) {
	dir := refdata.Path(t, "memplan")
	files, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	require.NoError(t, err)
	for _, sub := range []string{"small", "models"} {
		more, err := filepath.Glob(filepath.Join(dir, sub, "*.csv"))
		require.NoError(t, err)
		files = append(files, more...)
	}
	require.Len(t, files, 11+7+3)
	r := planFiles(t, append(files, "--nodes", "1000")...)
	require.Equal(t, r, planFiles(t, append(files, "--nodes", "1000")...))
	for _, x := range r.Plans {
		require.True(t, x.Valid, x.File)
		require.Len(t, x.Offsets, x.N, x.File)
		require.NotEmpty(t, x.Peak.IDs, x.File)
		if strings.Contains(x.File, "models") {
			require.True(t, x.Optimal, x.File)
			require.Equal(t, x.LowerBound, x.Arena, x.File)
		}
	}

	csv := filepath.Join(t.TempDir(), "plan.csv")
	one := planFiles(t, files[0], "--nodes", "1000", "--csv", csv)
	f, err := os.Open(csv)
	require.NoError(t, err)
	table, err := mempool.ReadCSV(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, mempool.Validate(table.Items, table.Offsets))
	for i, o := range one.Plans[0].Offsets {
		require.Equal(t, o, offsetItem{table.IDs[i], table.Offsets[i]})
	}
}

// The tiny instances are named after the capacity that each can meet.
func TestPlanTinyCapacities(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(refdata.Path(t, "memplan"), "small", "*.csv"))
	require.NoError(t, err)
	for _, file := range files {
		_, capacity, ok := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".csv"), ".")
		require.True(t, ok)
		fine(t, "plan", file, "--capacity", capacity)
	}
}

// A plan that was written passes its check; one that was changed does not, and
// the report says why.
func TestPlanCheck(t *testing.T) {
	planned := filepath.Join(t.TempDir(), "planned.csv")
	fine(t, "plan", planFile(t), "--align", "64", "--csv", planned)
	r := planFiles(t, planned, "--check", "--align", "64")
	require.True(t, r.Plans[0].Valid)
	require.Equal(t, "file", r.Plans[0].Method)
	require.LessOrEqual(t, r.Plans[0].LowerBound, r.Plans[0].Arena)

	for _, c := range []struct{ name, row, want string }{
		{"overlap", "b,1,2,50,60", "items 1 and 0 overlap: bytes 60 to 109 at nodes 1 to 1, and bytes 0 to 99 at nodes 0 to 2"},
		{"misaligned", "b,1,2,50,130", "item 1: want an offset of at least 0 that is a multiple of 64, got 130"},
		{"negative", "b,1,2,50,-64", "got -64"},
		{"too far", "b,1,2,50,9223372036854775744", "item 1"},
	} {
		file := write(t, "changed.csv", []byte("id,lower,upper,size,offset\na,0,3,100,0\n"+c.row+"\n"))
		align := "64"
		if c.name == "overlap" {
			align = "4"
		}
		got := atbRun(t, "plan", file, "--check", "--align", align)
		require.Equal(t, exitFailed, got.code, c.name)
		require.Contains(t, got.stdout, "invalid: ", c.name)
		require.Contains(t, got.stdout, c.want, c.name)
		require.Contains(t, got.stderr, "1 of 1 plans are invalid", c.name)
	}
	require.Contains(t, atbRun(t, "plan", planFile(t), "--check").stderr, "--check: want an offset in every row")
}
