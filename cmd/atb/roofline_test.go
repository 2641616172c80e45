package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRoofline(t *testing.T) {
	if testing.Short() {
		t.Skip("measures for a second")
	}
	var r rooflineReport
	strictJSON(t, fine(t, "roofline", "--threads", "1", "--time", "1ms", "--case", "cast", "--json"), &r)
	assert.Equal(t, "roofline", r.Command)
	assert.Positive(t, r.Peaks["1"].Read)
	require.Len(t, r.Kernels, 1)
	assert.Equal(t, "copy", r.Kernels[0].Limit)
	assert.Positive(t, r.Kernels[0].Fraction)
	for _, bad := range [][]string{{"--threads", "0"}, {"--time", "0s"}, {"--case", "no such case"}} {
		r := atbRun(t, append([]string{"roofline"}, bad...)...)
		assert.Equal(t, exitUsage, r.code, "%v", bad)
		assert.Empty(t, r.stdout)
		assert.Contains(t, r.stderr, bad[0])
	}
}
