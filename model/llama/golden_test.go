package llama_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/internal/refdata"
	"goatb/mempool"
	"goatb/model/llama"
	"goatb/tensor"
)

// golden is the float64 greedy decoding of stories260K.
type golden struct {
	Steps []struct {
		Pos    int     `json:"pos"`
		In     int32   `json:"in_token"`
		Argmax int32   `json:"argmax"`
		Margin float64 `json:"top1_minus_top2"`
		// Logits are there at positions 0, 1, 31, 199 and 254.
		Logits []float64 `json:"logits"`
	} `json:"steps"`
}

// stories returns the folder of the model, or skips.
func stories(t testing.TB) string {
	t.Helper()
	return refdata.Path(t, "models", "stories260K")
}

func loadGolden(t testing.TB, dir string) golden {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "golden-greedy-f64.json"))
	require.NoError(t, err)
	var g golden
	require.NoError(t, json.Unmarshal(b, &g))
	require.Len(t, g.Steps, 255)
	return g
}

// decode feeds the golden tokens in pieces of `prefill` and then one by one, and
// calls check with the logits of every position.
func decode(t testing.TB, s *llama.Session, g golden, prefill, steps int, check func(pos int, logits []float32)) {
	t.Helper()
	for at := 0; at < steps; {
		n := 1
		if at == 0 {
			n = min(prefill, steps)
		}
		var rows []llama.Row
		var want []int32
		for i := range n {
			rows = append(rows, llama.Row{Token: g.Steps[at+i].In})
			want = append(want, int32(i))
		}
		logits, err := s.Forward(t.Context(), rows, want)
		require.NoError(t, err)
		vocab := len(logits) / n
		for i := range n {
			check(at+i, logits[i*vocab:(i+1)*vocab])
		}
		at += n
	}
}

func argmax(v []float32) int32 {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return int32(best)
}

// TestGreedyIsGolden decodes in float32 under every policy, solver, cache
// setting, block size and prefill length. The tolerance 2e-4 covers float32
// sums of up to 172 products through five layers against float64.
func TestGreedyIsGolden(t *testing.T) {
	dir := stories(t)
	g := loadGolden(t, dir)
	w, _, err := llama.LoadDir(dir)
	require.NoError(t, err)
	type setting struct {
		policy         string
		caches         bool
		solver         mempool.SolverType
		block, prefill int
	}
	var settings []setting
	for _, policy := range []string{"kernel-follow", "overall", "multi-stream", "device-sink"} {
		for _, caches := range []bool{true, false} {
			settings = append(settings, setting{policy, caches, mempool.Optimal, 16, 1})
		}
	}
	for solver := range mempool.Optimal {
		settings = append(settings, setting{"kernel-follow", true, solver, 16, 7})
	}
	for i, block := range []int{1, 2, 128} {
		settings = append(settings, setting{"overall", true, mempool.Optimal, block, []int{7, 64, 64}[i]})
	}
	for _, x := range settings {
		name := fmt.Sprintf("policy=%s/caches=%v/solver=%d/block=%d/prefill=%d", x.policy, x.caches, x.solver, x.block, x.prefill)
		t.Run(name, func(t *testing.T) {
			opts := []atb.Option{atb.WithPolicy(x.policy), atb.WithSolver(x.solver)}
			if !x.caches {
				opts = append(opts, atb.WithTilingCaches(0), atb.WithSetupReuse(false))
			}
			s := open(t, w, tensor.Float32, llama.Options{Sequences: 1, BlockSize: x.block}, newDevice(t), opts...)
			steps := len(g.Steps)
			if testing.Short() {
				steps = 70
			}
			decode(t, s, g, x.prefill, steps, func(pos int, logits []float32) {
				require.Equal(t, g.Steps[pos].Argmax, argmax(logits), "position %d", pos)
				for i, want := range g.Steps[pos].Logits {
					require.InDelta(t, want, logits[i], 2e-4*math.Max(1, math.Abs(want)), "logit %d at position %d", i, pos)
				}
			})
		})
	}
}

// TestHalfPrecisionFollows decodes in f16 and bf16 up to position 184. f16 gives
// every id. bf16 logits near 16 lie 1/8 apart: ids may differ where the margin
// is below twice that, one spacing for each of the two logits.
func TestHalfPrecisionFollows(t *testing.T) {
	dir := stories(t)
	g := loadGolden(t, dir)
	w, _, err := llama.LoadDir(dir)
	require.NoError(t, err)
	for dtype, margin := range map[tensor.DType]float64{tensor.Float16: 0, tensor.BFloat16: 0.25} {
		t.Run(dtype.String(), func(t *testing.T) {
			s := open(t, w, dtype, llama.Options{Sequences: 1, BlockSize: 16}, newDevice(t))
			decode(t, s, g, 7, 185, func(pos int, logits []float32) {
				if g.Steps[pos].Margin > margin {
					require.Equal(t, g.Steps[pos].Argmax, argmax(logits), "position %d", pos)
				}
			})
		})
	}
}
