package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
	"goatb/tiling"
)

// TestGenerateOnSim: the simulated device computes what the CPU device computes.
func TestGenerateOnSim(t *testing.T) {
	sameOnSim(t, "--steps", "6", "--prompt-ids", "1,5,9")
}

func TestStoriesOnSim(t *testing.T) {
	sameOnSim(t, "--model", refdata.Path(t, "models", "stories260K"), "--steps", "40", "--logits", "0,1,31")
}

func sameOnSim(t *testing.T, args ...string) {
	t.Helper()
	cleanEnv(t)
	var runs [2]report
	for i, dev := range []string{"cpu", "sim"} {
		strictJSON(t, fine(t, append([]string{"generate", "--json", "--policy", "all", "--device", dev}, args...)...), &runs[i])
	}
	require.Len(t, runs[1].Runs, len(tiling.Policies()))
	for i := range runs[0].Runs {
		c, s := &runs[0].Runs[i], &runs[1].Runs[i]
		require.Equal(t, c.Policy, s.Policy)
		require.Equal(t, c.IDs, s.IDs, c.Policy)
		require.Equal(t, c.Logits, s.Logits, c.Policy)
		require.Contains(t, s.Device, "sim")
	}
	var again report
	strictJSON(t, fine(t, append([]string{"generate", "--json", "--policy", "kernel-follow", "--device", "sim"}, args...)...), &again)
	require.Equal(t, runs[1].Runs[0].TokensPerSecond, again.Runs[0].TokensPerSecond, "virtual time")
}
