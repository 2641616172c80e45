package gemm

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

const canary = 0xa5

// guarded is memory at a random alignment between canaries, poisoned with bits
// that are NaN as floats.
type guarded struct {
	whole, payload []byte
	start          int
}

func newGuarded(r *rand.Rand, n int) guarded {
	start := 128 + r.IntN(64)
	g := guarded{whole: make([]byte, start+n+128), start: start}
	for i := range g.whole {
		g.whole[i] = canary
	}
	g.payload = g.whole[start : start+n : start+n]
	for i := range g.payload {
		g.payload[i] = 0xff
	}
	return g
}

// check looks at the canaries.
func (g guarded) check(t *testing.T) {
	t.Helper()
	for i, v := range g.whole {
		if (i < g.start || i >= g.start+len(g.payload)) && v != canary {
			require.FailNow(t, "memory around an operand was written", "byte %d of %d", i-g.start, len(g.payload))
		}
	}
}
