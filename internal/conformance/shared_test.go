package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device/cpu"
)

// shared returns the folder of rows and golden cases beside the module, or
// skips the test.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		require.NotEqual(t, parent, dir, "no go.mod above the test")
		dir = parent
	}
	dir = filepath.Join(dir, "..", "shared")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("rows and golden cases are not there: " + dir)
	}
	return dir
}

// runtime makes an engine on the CPU device with the checks of the 910B.
func runtime(t *testing.T) *Runtime {
	t.Helper()
	dev, err := cpu.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	c, err := atbctx.New(dev, atbctx.WithChecks("910b"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	r, err := NewRuntime(c)
	require.NoError(t, err)
	return r
}

func TestGoldenCases(t *testing.T) {
	dir := shared(t)
	e := runtime(t)
	res, err := Check([]string{filepath.Join(dir, "golden")}, Options{Engine: e})
	require.NoError(t, err)
	report(t, res)
}

func TestRows(t *testing.T) {
	dir := shared(t)
	e := runtime(t)
	stale, err := ReadStale(filepath.Join(dir, "atb-csv", "stale.tsv"))
	require.NoError(t, err)
	res, err := Check([]string{filepath.Join(dir, "atb-csv")}, Options{Engine: e, Stale: stale})
	require.NoError(t, err)
	report(t, res)
}

func report(t *testing.T, res *Results) {
	for _, c := range res.Cases {
		if c.Status == Failed {
			t.Errorf("%s row %d case %s %s: want %s, got %s: %s", filepath.Base(c.Path), c.Row, c.Case, c.Op, c.Expected, c.Got, c.Reason)
		}
	}
	for _, o := range res.Ops {
		if o.Passed+o.Failed+o.StageOnly > 0 {
			t.Logf("%s %+v", o.Op, o.Totals)
		}
	}
	t.Logf("%+v", res.Totals)
}
