package vec

import (
	"math"
	"testing"

	"goatb/internal/cpu"
)

// eachLevel runs a test in plain Go and with every assembly of this machine.
func eachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			test(t)
		})
	}
}

// plain reports whether the level of the running test has no assembly.
func plain() bool { return cpu.Active() == cpu.None }

// sameBits compares floats bit by bit, except that any NaN is the same.
func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}
