package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// storiesGolden reads the model folder of the reference data and the ids and
// logits that float64 gives, or skips.
func storiesGolden(t *testing.T) (dir, ids string, logits map[string][]float64) {
	t.Helper()
	dir, err := filepath.Abs("../../../shared/models/stories260K")
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "golden-greedy-f64.json"))
	if err != nil {
		t.Skipf("the shared test data is absent: %v", err)
	}
	var g struct {
		Steps []struct {
			Pos    int       `json:"pos"`
			Argmax int       `json:"argmax"`
			Logits []float64 `json:"logits"`
		} `json:"steps"`
	}
	require.NoError(t, json.Unmarshal(b, &g))
	logits = map[string][]float64{}
	var all []string
	for _, s := range g.Steps {
		all = append(all, fmt.Sprint(s.Argmax))
		if s.Logits != nil {
			logits[fmt.Sprint(s.Pos)] = s.Logits
		}
	}
	require.Len(t, logits, 5)
	return dir, strings.Join(all, " ") + "\n", logits
}

// TestGenerateGolden decodes stories260K with every policy, caches on and off,
// every solver, cache block sizes 1, 2, 16 and 128: all ids are those of
// float64. In short mode a tenth of the settings run.
func TestGenerateGolden(t *testing.T) {
	dir, ids, _ := storiesGolden(t)
	n := 0
	for _, policy := range []string{"kernel-follow", "overall", "multi-stream"} {
		for _, caches := range []string{"on", "off"} {
			for solver := range 5 {
				for _, block := range []int{1, 2, 16, 128} {
					if n++; testing.Short() && n%10 != 0 {
						continue
					}
					args := []string{"generate", "--model", dir, "--steps", "255", "--ids", "--policy", policy, "--caches", caches,
						"--solver", fmt.Sprint(solver), "--block-size", fmt.Sprint(block)}
					r := atbRun(t, args...)
					require.Equal(t, exitOK, r.code, "%v: %s", args, r.stderr)
					require.Equal(t, ids, r.stdout, "%v", args)
				}
			}
		}
	}
}

// TestGenerateLogits feeds the golden tokens as a prompt in pieces of 1, 7 and
// 64 tokens. The tolerance 2e-4 covers float32 sums of up to 172 products
// through five layers against float64.
func TestGenerateLogits(t *testing.T) {
	dir, ids, logits := storiesGolden(t)
	prompt := "1," + strings.ReplaceAll(strings.TrimSpace(ids), " ", ",")
	prompt = prompt[:strings.LastIndexByte(prompt, ',')]
	for _, policy := range []string{"kernel-follow", "overall", "multi-stream"} {
		for _, prefill := range []string{"1", "7", "64"} {
			for _, block := range []string{"1", "2", "16", "128"} {
				r := atbRun(t, "generate", "--model", dir, "--steps", "1", "--json", "--policy", policy, "--prefill", prefill, "--block-size", block,
					"--prompt-ids", prompt, "--logits", "0,1,31,199,254")
				require.Equal(t, exitOK, r.code, r.stderr)
				var g report
				strictJSON(t, r.stdout, &g)
				require.Len(t, g.Runs[0].Logits, 5)
				for pos, want := range logits {
					for i, w := range want {
						require.LessOrEqual(t, math.Abs(float64(g.Runs[0].Logits[pos][i])-w), 2e-4*math.Max(1, math.Abs(w)), "logit %d at %s", i, pos)
					}
				}
			}
		}
	}
}
