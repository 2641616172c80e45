package conformance

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device/cpu"
	"goatb/internal/refdata"
)

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

// catalogTotals adds up the cases of operations that the catalog has.
func catalogTotals(t *testing.T, e Engine, res *Results) Totals {
	t.Helper()
	var sum Totals
	for _, c := range res.Cases {
		if !e.Has(c.Op) || strings.HasPrefix(c.Reason, "for other boards") {
			continue
		}
		sum.add(c.Status)
		if c.Status == Failed {
			t.Errorf("%s row %d case %s %s: want %s, got %s: %s", filepath.Base(c.Path), c.Row, c.Case, c.Op, c.Expected, c.Got, c.Reason)
		}
	}
	return sum
}

func TestGoldenCases(t *testing.T) {
	dir := refdata.Path(t)
	e := runtime(t)
	stale, err := ReadStale(filepath.Join(dir, "atb-csv", "stale.tsv"))
	require.NoError(t, err)
	res, err := Check([]string{filepath.Join(dir, "golden")}, Options{Engine: e, Stale: stale})
	require.NoError(t, err)
	assert.Equal(t, Totals{Passed: 402}, catalogTotals(t, e, res))
	assert.Equal(t, Totals{Passed: 402, Skipped: 460}, res.Totals, "all others are for later operations")
}

func TestRows(t *testing.T) {
	dir := refdata.Path(t)
	e := runtime(t)
	stale, err := ReadStale(filepath.Join(dir, "atb-csv", "stale.tsv"))
	require.NoError(t, err)
	res, err := Check([]string{filepath.Join(dir, "atb-csv")}, Options{Engine: e, Stale: stale})
	require.NoError(t, err)
	assert.Equal(t, Totals{Passed: 1354, Skipped: 5, StageOnly: 126}, catalogTotals(t, e, res), "1485 rows of this board, 5 of them stale")
	assert.Len(t, res.Cases, 4931)
}
