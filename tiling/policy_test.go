package tiling_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/tiling"
	"goatb/tiling/tilingtest"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts in testdata anew")

func TestConformance(t *testing.T) {
	for _, p := range tiling.Policies() {
		t.Run(p.Name(), func(t *testing.T) { tilingtest.Run(t, p) })
	}
}

// What each policy enqueues for one launch, call by call.
func TestTranscripts(t *testing.T) {
	for _, p := range tiling.Policies() {
		path, got := filepath.Join("testdata", p.Name()+".txt"), tilingtest.Transcript(t, p)
		if *rewrite {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(want), got, p.Name())
	}
}

func TestByName(t *testing.T) {
	for name, want := range map[string]string{
		"overall": "overall", "multi-stream": "multi-stream", "kernel-follow": "kernel-follow", "kernel": "kernel-follow", "device-sink": "device-sink",
	} {
		p, err := tiling.ByName(name)
		require.NoError(t, err)
		assert.Equal(t, want, p.Name())
	}
	for _, name := range []string{"", "Overall", " overall", "sink", "kernel-follow,overall"} {
		_, err := tiling.ByName(name)
		require.Error(t, err, "%q", name)
		for _, p := range tiling.Policies() {
			assert.ErrorContains(t, err, p.Name())
		}
	}
	assert.Equal(t, "kernel-follow", tiling.Policies()[0].Name(), "the default comes first")
}

func TestWhatPoliciesUse(t *testing.T) {
	type needs struct {
		rings, copyStream bool
		group             int
		fences, captures  bool
	}
	got := map[string]needs{}
	for _, p := range tiling.Policies() {
		got[p.Name()] = needs{p.UsesRings(), p.UsesCopyStream(), p.Group(), p.Fences(), p.Captures()}
	}
	assert.Equal(t, map[string]needs{
		"kernel-follow": {false, false, 1, false, false},
		"overall":       {true, false, 0, false, false},
		"multi-stream":  {true, true, tiling.CopyGroup, true, false},
		"device-sink":   {false, false, 1, false, true},
	}, got)
}

func TestEventRing(t *testing.T) {
	dev, err := cpu.New(cpu.WithInline())
	require.NoError(t, err)
	r, err := tiling.NewEventRing(dev, 3)
	require.NoError(t, err)
	var events []device.Event
	for range 7 {
		events = append(events, r.Next())
	}
	for i := range events {
		assert.Same(t, events[i%3], events[i], "in turn")
	}
	assert.NotSame(t, events[0], events[1])
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.NoError(t, dev.Close())
	_, err = tiling.NewEventRing(dev, 3)
	assert.Error(t, err, "no events from a closed device")
}
