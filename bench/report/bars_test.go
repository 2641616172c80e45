package report

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/bench/compare"
)

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999", math.MaxInt64: "9,223,372,036,854,775,807"} {
		assert.Equal(t, want, count(n))
	}
	for n, want := range map[int64]string{0: "0.0", 49: "0.0", 50: "0.1", 1949: "1.9", 1950: "2.0", 12_934_600: "12,934.6", -1500: "−1.5", -20: "0.0"} {
		assert.Equal(t, want, us(n), n)
	}
	assert.Equal(t, "0 %", percent(1, 0))
	assert.Equal(t, "12.5 %", percent(1, 8))
	assert.Equal(t, []string{"+1.5 %", "−1.5 %", "0.0 %", "0.0 %"}, []string{signed(1.5), signed(-1.5), signed(0.04), signed(-0.04)})
}

// TestBars: the longest fills the chart, the others are in proportion, and what
// takes no time has no piece.
func TestBars(t *testing.T) {
	r := &compare.Result{Policies: []compare.Policy{
		{Policy: "a", StepNs: 1000, DeviceBusyNs: 750, Idle: compare.Idle{Tiling: 200, Other: 50}},
		{Policy: "b", StepNs: 500, DeviceBusyNs: 450, Idle: compare.Idle{Ring: 50}},
	}}
	steps := stepBars(r)
	assert.Equal(t, []piece{
		{Cause: "busy", Name: "device busy", Label: "75.0 %", Time: "0.8 µs, 75.0 %", Width: "75.000"},
		{Cause: "tiling", Name: "tiling", Label: "20.0 %", Time: "0.2 µs, 20.0 %", Width: "20.000"},
		{Cause: "other", Name: "other", Time: "0.1 µs, 5.0 %", Width: "5.000"},
	}, steps[0].Pieces)
	assert.Equal(t, []piece{
		{Cause: "busy", Name: "device busy", Label: "90.0 %", Time: "0.5 µs, 90.0 %", Width: "45.000"},
		{Cause: "ring", Name: "ring", Time: "0.1 µs, 10.0 %", Width: "5.000"},
	}, steps[1].Pieces)
	idle := idleBars(r)
	assert.Equal(t, "80.000", idle[0].Pieces[0].Width)
	assert.Equal(t, "20.000", idle[1].Pieces[0].Width)
	assert.Equal(t, "b, 0.1 µs: tiling 0.0 µs, copy 0.0 µs, launch 0.0 µs, event 0.0 µs, ring 0.1 µs, other 0.0 µs", idle[1].Words)
}
