package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"goatb/runner"
)

// report is what generate prints as JSON.
type report struct {
	Schema   int         `json:"schema"`
	Command  string      `json:"command"`
	Runs     []runReport `json:"runs"`
	IDsAgree bool        `json:"ids_agree"`
}

// runReport is the run of one policy. Times are nanoseconds, sizes bytes.
type runReport struct {
	Policy string `json:"policy"`
	Device string `json:"device"`
	DType  string `json:"dtype"`
	// Weights is the format of the matrices where it is not DType.
	Weights string  `json:"weights,omitempty"`
	IDs     []int32 `json:"ids"`
	Text    string  `json:"text"`
	// TokensPerSecond counts the tokens of all sequences after the prefill.
	TokensPerSecond float64 `json:"tokens_per_s"`
	PrefillNs       int64   `json:"prefill_ns"`
	// SetupNs and ExecuteNs are medians over the steps.
	SetupNs        int64 `json:"setup_ns"`
	ExecuteNs      int64 `json:"execute_ns"`
	KernelsPerStep int64 `json:"kernels_per_step"`
	HostTilings    int64 `json:"host_tilings"`
	DeviceTilings  int64 `json:"device_tilings"`
	// Captures, Replays and Fallbacks are those of device-sink.
	Captures        int64           `json:"captures"`
	Replays         int64           `json:"replays"`
	Fallbacks       []fallbackEntry `json:"fallbacks"`
	Cache           cacheReport     `json:"cache"`
	SetupHits       int64           `json:"setup_hits"`
	RingStalls      int64           `json:"ring_stalls"`
	BytesMoved      int64           `json:"bytes_moved"`
	WorkspaceBytes  int64           `json:"workspace_bytes"`
	ArenaLowerBound int64           `json:"arena_lower_bound"`
	// AllocsPerStep is the mean over the second half of the steps.
	AllocsPerStep float64              `json:"allocs_per_step"`
	Logits        map[string][]float32 `json:"logits,omitempty"`

	// all are the ids of every sequence; IDs is the first of them.
	all [][]int32
}

// fallbackEntry is a tiling that was to leave the host and did not.
type fallbackEntry struct {
	Operation string `json:"operation"`
	Reason    string `json:"reason"`
	Times     int64  `json:"times"`
}

func fallbackEntries(list []runner.Fallback) []fallbackEntry {
	out := []fallbackEntry{}
	for _, f := range list {
		name := f.Op
		if f.Node != "" {
			name += "/" + f.Node
		}
		out = append(out, fallbackEntry{name, f.Gate + ": " + f.Reason, f.Times})
	}
	return out
}

// cacheReport counts tiling lookups.
type cacheReport struct {
	LocalHits  int64 `json:"local_hits"`
	GlobalHits int64 `json:"global_hits"`
	Misses     int64 `json:"misses"`
}

// agrees compares the ids of all sequences and the logits that were asked for,
// bit for bit.
func (r *runReport) agrees(o *runReport) bool {
	return slices.EqualFunc(r.all, o.all, slices.Equal) && maps.EqualFunc(r.Logits, o.Logits, slices.Equal)
}

// print prints ids, JSON, or a text with a table.
func (g *generateCmd) print(w io.Writer, r *report) error {
	switch {
	case g.Ids:
		s := make([]string, len(r.Runs[0].IDs))
		for i, id := range r.Runs[0].IDs {
			s[i] = strconv.Itoa(int(id))
		}
		_, err := fmt.Fprintln(w, strings.Join(s, " "))
		return err
	case g.JSON:
		return writeJSON(w, r)
	}
	first := &r.Runs[0]
	if first.Text != "" {
		fmt.Fprintf(w, "%s\n\n", first.Text)
	}
	for _, pos := range g.Logits {
		fmt.Fprintf(w, "logits at %d: %v\n", pos, first.Logits[strconv.Itoa(pos)])
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\ttokens/s\tsetup us\texecute us\tkernels\ttilings\ton device\tmoved KiB\tring stalls\tallocs\t")
	for i := range r.Runs {
		x := &r.Runs[i]
		fmt.Fprintf(t, "%s\t%.0f\t%.1f\t%.1f\t%d\t%d\t%d\t%.1f\t%d\t%.1f\t\n", x.Policy, x.TokensPerSecond, float64(x.SetupNs)/1e3, float64(x.ExecuteNs)/1e3,
			x.KernelsPerStep, x.HostTilings, x.DeviceTilings, float64(x.BytesMoved)/1024, x.RingStalls, x.AllocsPerStep)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d tokens, %s on %s; setup and execute are host time per step (median), kernels and allocs are per step\n", len(first.IDs), first.DType, first.Device)
	if len(r.Runs) == 1 {
		return nil
	}
	verdict := "the policies agree on every id"
	if !r.IDsAgree {
		verdict = "the policies disagree"
	}
	_, err := fmt.Fprintln(w, verdict)
	return err
}
