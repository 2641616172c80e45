package main

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProgressIsQuietAtFirst: no line in the first two seconds, then one a
// second at most.
func TestProgressIsQuietAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := newProgress(&b)
		for range 55 {
			if p.due() {
				p.printf("at %v", time.Duration(0))
			}
			<-time.After(100 * time.Millisecond)
		}
		require.Equal(t, "at 0s\nat 0s\nat 0s\nat 0s\n", b.String(), "after 2, 3, 4 and 5 seconds")
	})
}

// TestInterrupted ends commands whose context has ended with status 2.
func TestInterrupted(t *testing.T) {
	cleanEnv(t)
	in, _ := mlpInputs(t)
	graph := write(t, "mlp.json", []byte(mlp))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"generate"},
		{"plan", "testdata/buffers.csv"},
		{"run", graph, "--inputs", in, "--outputs", t.TempDir() + "/o"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(ctx, args, output{&stdout, &stderr})
		require.Equal(t, exitUsage, code, "%v", args)
		require.Contains(t, stderr.String(), "context canceled")
		require.Empty(t, stdout.String())
	}
}
