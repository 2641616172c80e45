package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTune(t *testing.T) {
	var r tuneReport
	strictJSON(t, fine(t, "tune", "--threads", "1", "--time", "1ns", "--case", "linear 5x64x64 f32", "--json"), &r)
	assert.Equal(t, "tune", r.Command)
	require.Len(t, r.Rows, 1)
	row := &r.Rows[0]
	assert.Equal(t, []any{"linear", "5x64x64", "f32", 1}, []any{row.Name, row.Shape, row.DType, row.Threads})
	assert.Contains(t, row.Chosen, "matmul/")
	assert.Positive(t, row.TimeNS)
	assert.Positive(t, row.Ratio)
	text := fine(t, "tune", "--threads", "1", "--time", "1ns", "--case", "linear 5x64x64 f32")
	assert.Equal(t, 4, strings.Count(text, "\n"), "machine, a blank line, heading and row: %s", text)
	for _, bad := range [][]string{{"--threads", "0"}, {"--time", "0s"}, {"--case", "no such case"}, {"--least", "2"}, {"--least", "NaN"}} {
		r := atbRun(t, append([]string{"tune"}, bad...)...)
		assert.Equal(t, exitUsage, r.code, "%v", bad)
		assert.Empty(t, r.stdout)
		assert.Contains(t, r.stderr, bad[0])
	}
}

// A row below the bar is a failure; the bar 0 is never missed.
func TestTuneJudges(t *testing.T) {
	r := tuneReport{Rows: []tuneRow{{Ratio: 0.95}, {Ratio: 0.89}, {Ratio: 1}}}
	var said bytes.Buffer
	require.NoError(t, r.judge(&said, 0))
	require.NoError(t, r.judge(&said, 0.89))
	assert.Empty(t, said.String())
	require.ErrorIs(t, r.judge(&said, 0.9), errFailed)
	assert.Equal(t, "1 of 3 rows have a ratio below 0.9\n", said.String())
}
