package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
)

var allPolicies = []string{"kernel-follow", "overall", "multi-stream", "device-sink"}

// golden is the float64 greedy decoding of stories260K from BOS.
type golden struct {
	dir     string
	ids     []string
	margins []float64
	// logits are those of positions 0, 1, 31, 199 and 254.
	logits map[int][]float64
}

// stories reads the reference data, or skips.
func stories(t *testing.T) golden {
	t.Helper()
	dir := refdata.Path(t, "models", "stories260K")
	b, err := os.ReadFile(filepath.Join(dir, "golden-greedy-f64.json"))
	require.NoError(t, err)
	var file struct {
		Steps []struct {
			Pos    int       `json:"pos"`
			Argmax int       `json:"argmax"`
			Margin float64   `json:"top1_minus_top2"`
			Logits []float64 `json:"logits"`
		} `json:"steps"`
	}
	require.NoError(t, json.Unmarshal(b, &file))
	g := golden{dir: dir, logits: map[int][]float64{}}
	for _, s := range file.Steps {
		g.ids, g.margins = append(g.ids, strconv.Itoa(s.Argmax)), append(g.margins, s.Margin)
		if s.Logits != nil {
			g.logits[s.Pos] = s.Logits
		}
	}
	require.Len(t, g.ids, 255)
	require.Len(t, g.logits, 5)
	return g
}

// TestGreedyIdsAreGolden decodes 255 steps from BOS under every policy, alone and
// all together, with caches and without, each with another solver and block
// size: standard output is the ids and nothing else.
func TestGreedyIdsAreGolden(t *testing.T) {
	cleanEnv(t)
	g := stories(t)
	want := strings.Join(g.ids, " ") + "\n"
	for i, policy := range allPolicies {
		for j, caches := range []string{"on", "off"} {
			for k, block := range []string{"1", "2", "16", "128"} {
				if testing.Short() && k != i {
					continue
				}
				args := []string{"generate", "--model", g.dir, "--steps", "255", "--ids", "--policy", policy, "--caches", caches,
					"--block-size", block, "--solver", strconv.Itoa((2*i + j + k) % 5)}
				require.Equal(t, want, fine(t, args...), "%v", args)
			}
		}
	}
	require.Equal(t, want, fine(t, "generate", "--model", g.dir, "--steps", "255", "--ids"), "all policies together")
}

// TestEverySettingIsGolden decodes with every policy, caches on and off, every
// solver, cache blocks of 1, 2, 16 and 128 positions and prefill pieces of 1, 7
// and 64 of a prompt of 70 tokens: ids and logits are those of float64. The
// tolerance 2e-4 covers float32 sums of up to 172 products through five layers.
// Of the twelve pairs of block size and prefill each policy, caches and solver
// run three, so that any two values of two settings meet; in short mode
// every seventh of these runs.
func TestEverySettingIsGolden(t *testing.T) {
	cleanEnv(t)
	g := stories(t)
	blocks, prefills := []string{"1", "2", "16", "128"}, []string{"1", "7", "64"}
	n := 0
	for p, policy := range allPolicies {
		for c, caches := range []string{"on", "off"} {
			for solver := range 5 {
				for b, block := range blocks {
					prefill := prefills[(p+c+solver+b)%len(prefills)]
					if (p+2*c+solver+b)%len(blocks) == 0 {
						continue
					}
					if n++; testing.Short() && n%7 != 3 {
						continue
					}
					g.checkSetting(t, "--policy", policy, "--caches", caches, "--solver", strconv.Itoa(solver), "--block-size", block, "--prefill", prefill)
				}
			}
		}
	}
}

// checkSetting generates behind a prompt of 70 tokens.
func (g *golden) checkSetting(t *testing.T, setting ...string) {
	t.Helper()
	const prompt = 70
	ids := append([]string{"1"}, g.ids[:prompt-1]...)
	args := append([]string{"generate", "--model", g.dir, "--json", "--prompt-ids", strings.Join(ids, ","),
		"--steps", strconv.Itoa(256 - prompt), "--logits", "0,1,31", "--logits", "199,254"}, setting...)
	var r report
	strictJSON(t, fine(t, args...), &r)
	require.Len(t, r.Runs, 1)
	require.Equal(t, g.ids[prompt-1:], texts(r.Runs[0].IDs), "%v", args)
	g.checkLogits(t, &r.Runs[0], args)
}

func texts(ids []int32) []string {
	var s []string
	for _, id := range ids {
		s = append(s, strconv.Itoa(int(id)))
	}
	return s
}

func (g *golden) checkLogits(t *testing.T, r *runReport, args []string) {
	t.Helper()
	require.Len(t, r.Logits, len(g.logits))
	for pos, want := range g.logits {
		got := r.Logits[strconv.Itoa(pos)]
		require.Len(t, got, len(want))
		for i, w := range want {
			if math.Abs(float64(got[i])-w) > 2e-4*math.Max(1, math.Abs(w)) {
				t.Fatalf("%v: logit %d at %d: want %g, got %g", args, i, pos, w, got[i])
			}
		}
	}
}

// TestHalfPrecisionFollowsGolden feeds the golden tokens in f16 and bf16: the
// next token is golden up to position 184, in bf16 except where the margin is
// below twice the spacing of logits near 16, 1/8.
func TestHalfPrecisionFollowsGolden(t *testing.T) {
	cleanEnv(t)
	g := stories(t)
	var positions []string
	for pos := range 185 {
		positions = append(positions, strconv.Itoa(pos))
	}
	prompt := strings.Join(append([]string{"1"}, g.ids[:184]...), ",")
	for dtype, margin := range map[string]float64{"f16": 0, "bf16": 0.25} {
		var r report
		strictJSON(t, fine(t, "generate", "--model", g.dir, "--json", "--dtype", dtype, "--prompt-ids", prompt, "--steps", "1",
			"--prefill", "7", "--logits", strings.Join(positions, ",")), &r)
		require.Len(t, r.Runs, len(allPolicies))
		require.True(t, r.IDsAgree)
		compared := 0
		for pos := range positions {
			if g.margins[pos] <= margin {
				continue
			}
			compared++
			logits := r.Runs[0].Logits[strconv.Itoa(pos)]
			best := slices.Index(logits, slices.Max(logits))
			require.Equal(t, g.ids[pos], strconv.Itoa(best), "%s at %d", dtype, pos)
		}
		require.Greater(t, compared, 100)
	}
}

// TestGenerateText goes on from a text and prints it with a table.
func TestGenerateText(t *testing.T) {
	cleanEnv(t)
	g := stories(t)
	out := fine(t, "generate", "--model", g.dir, "--prompt", "Once upon a time", "--steps", "20", "--logits", "2")
	require.True(t, strings.HasPrefix(out, "Once upon a time, there was a little girl named Lily."), out)
	for _, want := range []string{"logits at 2: [", "kernel-follow", "overall", "multi-stream", "tokens/s", "the policies agree on every id"} {
		require.Contains(t, out, want)
	}
}

// TestGenerateRandomModel checks the report of the model that needs no file.
func TestGenerateRandomModel(t *testing.T) {
	cleanEnv(t)
	var r report
	strictJSON(t, fine(t, "generate", "--json", "--steps", "6", "--batch", "2", "--prompt-ids", "1,5,9", "--prefill", "2", "--logits", "2,4"), &r)
	require.Equal(t, 1, r.Schema)
	require.Equal(t, "generate", r.Command)
	require.True(t, r.IDsAgree)
	require.Len(t, r.Runs, len(allPolicies))
	for i, x := range r.Runs {
		require.Contains(t, allPolicies, x.Policy)
		require.Equal(t, i, slices.IndexFunc(r.Runs, func(o runReport) bool { return o.Policy == x.Policy }), "each policy once")
		require.Equal(t, r.Runs[0].IDs, x.IDs)
		require.Len(t, x.IDs, 6)
		require.Equal(t, r.Runs[0].Logits, x.Logits)
		require.Len(t, x.Logits, 2)
		require.Len(t, x.Logits["2"], 2048)
		require.Contains(t, x.Device, "cpu")
		require.Equal(t, "f32", x.DType)
		require.Empty(t, x.Text, "a random model has no words")
		for name, v := range map[string]int64{"prefill_ns": x.PrefillNs, "setup_ns": x.SetupNs, "execute_ns": x.ExecuteNs, "kernels_per_step": x.KernelsPerStep,
			"host_tilings": x.HostTilings, "setup_hits": x.SetupHits, "bytes_moved": x.BytesMoved, "workspace_bytes": x.WorkspaceBytes,
			"arena_lower_bound": x.ArenaLowerBound} {
			assert.Positive(t, v, "%s of run %d", name, i)
		}
		assert.Positive(t, x.TokensPerSecond)
		assert.Zero(t, x.RingStalls)
		if x.Policy == "device-sink" {
			assert.Positive(t, x.DeviceTilings)
			continue
		}
		assert.Zero(t, x.DeviceTilings)
		assert.Positive(t, x.Cache.LocalHits)
		assert.Equal(t, x.HostTilings, x.Cache.Misses)
	}
	var off report
	strictJSON(t, fine(t, "generate", "--json", "--steps", "6", "--prompt-ids", "1,5,9", "--caches", "off", "--policy", "overall,kernel", "--policy", "overall"), &off)
	require.Len(t, off.Runs, 2, "each policy once")
	for _, x := range off.Runs {
		require.Equal(t, r.Runs[0].IDs, x.IDs, "neither caches nor batch change ids")
		require.Zero(t, x.SetupHits)
		require.Zero(t, x.Cache.LocalHits+x.Cache.GlobalHits)
		splits := int64(randomConfig().Layers) // a row's queries, keys and values lie in their product, several rows' do not
		require.Equal(t, x.KernelsPerStep*6+splits, x.HostTilings, "a prompt in one piece and 5 steps tile every kernel anew")
	}
}

func TestGenerateOneStep(t *testing.T) {
	cleanEnv(t)
	var r report
	strictJSON(t, fine(t, "generate", "--json", "--steps", "1", "--policy", "overall"), &r)
	require.Len(t, r.Runs[0].IDs, 1)
	require.Zero(t, r.Runs[0].TokensPerSecond, "no step after the prefill")
	require.Positive(t, r.Runs[0].KernelsPerStep)
	require.Len(t, strings.Fields(fine(t, "generate", "--ids", "--steps", "512", "--policy", "overall")), 512, "as many as there are positions")
}

// TestSamplesRepeat draws the same tokens for a seed under every setting, and
// others for another seed.
func TestSamplesRepeat(t *testing.T) {
	cleanEnv(t)
	draw := func(more ...string) string {
		return fine(t, append([]string{"generate", "--ids", "--steps", "12", "--temperature", "0.8", "--top-p", "0.9"}, more...)...)
	}
	want := draw("--seed", "3")
	for _, more := range [][]string{{"--policy", "overall"}, {"--inline"}, {"--workers", "1"}, {"--solver", "0", "--set", "ATB_OPSRUNNER_KERNEL_CACHE_TYPE=0,ATB_RUNNER_POOL_SIZE=0"}} {
		require.Equal(t, want, draw(append(more, "--seed", "3")...), "%v", more)
	}
	require.NotEqual(t, want, draw("--seed", "4"))
}

// TestDisagreementIsStatus1 compares reports of policies that disagree.
func TestDisagreementIsStatus1(t *testing.T) {
	a := runReport{all: [][]int32{{1, 2}, {3, 4}}, Logits: map[string][]float32{"0": {1, 2}}}
	same := runReport{all: [][]int32{{1, 2}, {3, 4}}, Logits: map[string][]float32{"0": {1, 2}}}
	require.True(t, a.agrees(&same))
	for name, b := range map[string]runReport{
		"an id":         {all: [][]int32{{1, 2}, {3, 5}}, Logits: a.Logits},
		"a length":      {all: [][]int32{{1, 2}, {3}}, Logits: a.Logits},
		"a sequence":    {all: [][]int32{{1, 2}}, Logits: a.Logits},
		"a logit":       {all: a.all, Logits: map[string][]float32{"0": {1, math.Nextafter32(2, 3)}}},
		"no logits":     {all: a.all},
		"logits of NaN": {all: a.all, Logits: map[string][]float32{"0": {1, float32(math.NaN())}}},
	} {
		require.False(t, a.agrees(&b), name)
	}
}

// TestVerdict prints reports of policies that agree and disagree in every form:
// status 1 belongs to the second, which are printed in full too.
func TestVerdict(t *testing.T) {
	for _, g := range []generateCmd{{}, {JSON: true}, {Ids: true}} {
		r := report{Schema: 1, Command: "generate", Runs: []runReport{{Policy: "overall", IDs: []int32{7, 8}}, {Policy: "multi-stream", IDs: []int32{7, 9}}}}
		var b bytes.Buffer
		err := g.finish(&b, &r)
		require.ErrorIs(t, err, errFailed)
		require.ErrorContains(t, err, "the policies disagree")
		switch {
		case g.Ids:
			require.Equal(t, "7 8\n", b.String())
		case g.JSON:
			var got report
			strictJSON(t, b.String(), &got)
			require.Equal(t, r.Runs[1].IDs, got.Runs[1].IDs)
			require.False(t, got.IDsAgree)
		default:
			require.Contains(t, b.String(), "the policies disagree\n")
		}
		r.IDsAgree = true
		require.NoError(t, g.finish(&bytes.Buffer{}, &r))
	}
}

// TestGenerateTrace writes a timeline of three policies: one process each, a
// row for the host and one for every stream that worked, each kernel of each
// step a slice.
func TestGenerateTrace(t *testing.T) {
	cleanEnv(t)
	file := filepath.Join(t.TempDir(), "trace.json")
	var r report
	strictJSON(t, fine(t, "generate", "--json", "--steps", "4", "--trace", file), &r)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var tl struct {
		TraceEvents []struct {
			Name, Cat, Ph string
			PID, TID      int
			TS, Dur       float64
			Args          map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(b, &tl))
	rows := map[string]string{}
	count := map[string]int64{}
	for _, e := range tl.TraceEvents {
		switch {
		case e.Name == "process_name":
			rows[fmt.Sprint(e.PID)] = e.Args["name"].(string)
		case e.Name == "thread_name":
			rows[fmt.Sprintf("%d/%d", e.PID, e.TID)] = e.Args["name"].(string)
		case e.Name == e.Cat && e.Cat == "setup": // the account's, inside the session's
		default:
			require.Contains(t, rows, fmt.Sprintf("%d/%d", e.PID, e.TID))
			count[fmt.Sprintf("%d %s %s %s", e.PID, strings.TrimRight(rows[fmt.Sprintf("%d/%d", e.PID, e.TID)], " 0123456789"), e.Ph, e.Cat)]++
		}
	}
	const packs = 4*6 + 1 // of each layer and of the head, when the model is loaded
	for i, x := range r.Runs {
		pid := i + 1
		require.Equal(t, x.Policy, rows[fmt.Sprint(pid)])
		require.Equal(t, "host", rows[fmt.Sprintf("%d/0", pid)])
		require.Equal(t, "stream 0", rows[fmt.Sprintf("%d/1", pid)])
		if x.Policy == "device-sink" {
			require.Positive(t, count[fmt.Sprintf("%d stream X replay", pid)])
			require.Equal(t, count[fmt.Sprintf("%d AICPU X preprocess", pid)], x.DeviceTilings)
			continue
		}
		require.Equal(t, x.Policy == "multi-stream", rows[fmt.Sprintf("%d/2", pid)] == "stream 1", "the copy stream")
		for what, n := range map[string]int64{
			"stream X launch": 4*x.KernelsPerStep + packs, "host X wait": 4,
			"host X setup": 4, "host X execute": 4, // one operation of a whole step
		} {
			require.Equal(t, n, count[fmt.Sprintf("%d %s", pid, what)], "%s of %s", what, x.Policy)
		}
		copies := map[string]int64{"kernel-follow": 0, "overall": 4, "multi-stream": 4}[x.Policy]
		for _, what := range []string{"host s enqueue", "stream f enqueue"} {
			require.GreaterOrEqual(t, count[fmt.Sprintf("%d %s", pid, what)], 4*x.KernelsPerStep+copies, "%s of %s", what, x.Policy)
		}
		require.Equal(t, x.Policy == "multi-stream", count[fmt.Sprintf("%d stream X wait", pid)] > 0, "kernels wait for copies")
	}
}
