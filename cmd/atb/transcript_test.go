package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the transcripts of testdata anew")

// TestTranscripts compares what commands print for people with the files of
// testdata. Times and the names of kernel variants, which depend on the
// processor, are left out; so are the amounts of scratch that variants ask for.
func TestTranscripts(t *testing.T) {
	cleanEnv(t)
	for name, args := range map[string][]string{
		"plan.txt":           {"plan", "testdata/buffers.csv", "testdata/nothing.csv", "--offsets"},
		"plan_first_fit.txt": {"plan", "testdata/buffers.csv", "--offsets", "--solver", "1", "--align", "64"},
		"graph.txt":          {"graph", "testdata/attention.json", "--workers", "2"},
		"graph_plan.txt":     {"graph", "testdata/attention.json", "--workers", "2", "--plan"},
		"graph_no_reuse.txt": {"graph", "testdata/attention.json", "--workers", "2", "--plan", "--set", "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE=0"},
		"graph.dot":          {"graph", "testdata/attention.json", "--workers", "2", "--format", "dot"},
		"env.txt":            {"env"},
		"env_set.txt":        {"env", "--set", "ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT=7,ATB_LAUNCH_KERNEL_WITH_TILING=0", "--set", `ATB_HOME_PATH=/a\,b`},
	} {
		t.Run(name, func(t *testing.T) {
			got := neutral(fine(t, args...))
			file := filepath.Join("testdata", name)
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got, "run go test ./cmd/atb -update when the change is meant")
		})
	}
}

var (
	duration = regexp.MustCompile(`in [0-9.]+[nµm]?s;`)
	variant  = regexp.MustCompile(`\b([a-z0-9]+)/[a-z0-9]+([("]|$)`)
	scratch  = regexp.MustCompile(`scratch [0-9]+`)
	total    = regexp.MustCompile(`workspace [0-9]+ = scratch ([0-9]+) `)
	offset   = regexp.MustCompile(`(nodes [0-9]+\.\.[0-9]+ at )([0-9]+)`)
)

// neutral leaves out what differs from machine to machine. Offsets of
// intermediates count from the end of the scratch memory.
func neutral(text string) string {
	if m := total.FindStringSubmatch(text); m != nil {
		base, _ := strconv.Atoi(m[1])
		text = offset.ReplaceAllStringFunc(text, func(s string) string {
			m := offset.FindStringSubmatch(s)
			at, _ := strconv.Atoi(m[2])
			return m[1] + strconv.Itoa(at-base)
		})
	}
	text = total.ReplaceAllString(text, "workspace N = scratch $1 ")
	text = duration.ReplaceAllString(text, "in TIME;")
	text = variant.ReplaceAllString(text, "$1/VARIANT$2")
	return scratch.ReplaceAllString(text, "scratch N")
}

func TestNeutralKeepsWhatMatters(t *testing.T) {
	in := "1 k/matmul: matmul/go(x, w) -> k scratch 192\nworkspace 700 = scratch 192 + intermediates 508 (lower bound 508, by largest-first)\n  a f32[2] nodes 1..2 at 200\n"
	require.Equal(t, "1 k/matmul: matmul/VARIANT(x, w) -> k scratch N\nworkspace N = scratch N + intermediates 508 (lower bound 508, by largest-first)\n  a f32[2] nodes 1..2 at 8\n", neutral(in))
	require.Equal(t, "by first-fit in TIME; peak", neutral("by first-fit in 13.5µs; peak"))
}
