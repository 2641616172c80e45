package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFiltersMustChoose(t *testing.T) {
	all := []named{{"SoftmaxOperation", "softmax 1 good"}, {"LinearOperation", "linear 2 wide"}, {"", "dirty"}}
	for _, c := range []struct {
		f    filter
		says string
	}{
		{filter{}, ""},
		{filter{ops: []string{"softmax", "LINEAROPERATION"}}, ""},
		{filter{part: "wide"}, ""},
		{filter{ops: []string{"linear"}, part: "wide"}, ""},
		{filter{ops: []string{"softmax", "lineer"}}, `op "lineer": nothing of that name is there, only "LinearOperation", "SoftmaxOperation"`},
		{filter{ops: []string{""}}, `op ""`},
		{filter{part: "narrow"}, `case "narrow": nothing of that name is there`},
		{filter{ops: []string{"softmax"}, part: "wide"}, `case "wide": nothing of that name is there`},
	} {
		err := c.f.check(all)
		if c.says == "" {
			assert.NoError(t, err, "%+v", c.f)
			continue
		}
		var no *NoMatchError
		require.ErrorAs(t, err, &no)
		assert.ErrorContains(t, err, c.says)
	}
}

func TestFilterMatrix(t *testing.T) {
	all := []Combination{{Op: "A", Name: "mask=none"}, {Op: "B", Name: "mask=norm"}}
	got, err := FilterMatrix(all, []string{"b"}, "mask")
	require.NoError(t, err)
	assert.Equal(t, all[1:], got)
	_, err = FilterMatrix(all, nil, "cache")
	require.ErrorContains(t, err, `case "cache"`)
	assert.Len(t, all, 2)
}

func TestPathsMustHaveCases(t *testing.T) {
	dir := t.TempDir()
	times := filepath.Join(dir, "times.csv")
	require.NoError(t, os.WriteFile(times, []byte("op|time\nx|1\n"), 0o600))
	_, err := Check([]string{times}, Options{Engine: &fake{}})
	require.ErrorContains(t, err, "times.csv has no rows: a suite begins with")
	_, err = Check([]string{dir}, Options{Engine: &fake{}})
	require.ErrorContains(t, err, "no cases in "+dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.safetensors"), []byte("junk"), 0o600))
	res, err := Check([]string{dir}, Options{Engine: &fake{}})
	require.NoError(t, err, "what cannot be read in a folder is a failed case")
	assert.Equal(t, Totals{Failed: 1}, res.Totals)
	res, err = Check([]string{dir, dir + "/."}, Options{Engine: &fake{}})
	require.NoError(t, err)
	assert.Equal(t, Totals{Failed: 1}, res.Totals, "a file that two paths have is run once")
}

func TestReadStaleRefuses(t *testing.T) {
	for text, says := range map[string]string{"": "is empty", "softmax\t3\tsays so\n": ":1: want a header", "suite\tcase\treason\nsoftmax 3\n": ":2: want suite"} {
		path := filepath.Join(t.TempDir(), "stale.tsv")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := ReadStale(path)
		require.ErrorContains(t, err, says)
	}
}
