package paged

import (
	"testing"

	"goatb/internal/cpu"
)

// TestLevels runs tests again in plain Go and with every assembly of this
// machine: values against float64, and bits that must not change.
func TestLevels(t *testing.T) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			for name, test := range map[string]func(t *testing.T){
				"query lens": TestAttendQueryLens, "quantised": TestAttendQuant, "batch": TestBatchDoesNotMatter,
				"query tile": TestQueryTileDoesNotMatter, "not a number": TestNaNStaysInItsRow,
			} {
				t.Run(name, test)
			}
		})
	}
}
