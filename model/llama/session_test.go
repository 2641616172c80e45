package llama_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/mempool"
	"goatb/model/llama"
	"goatb/tensor"
)

var policies = []string{"kernel-follow", "overall", "multi-stream"}

// forward computes rows and returns the logits of all of them.
func forward(t *testing.T, s *llama.Session, rows ...llama.Row) [][]float32 {
	t.Helper()
	var want []int32
	for i := range rows {
		want = append(want, int32(i))
	}
	flat, err := s.Forward(t.Context(), rows, want)
	require.NoError(t, err)
	var out [][]float32
	for l := range slices.Chunk(flat, len(flat)/len(rows)) {
		out = append(out, slices.Clone(l))
	}
	return out
}

// text returns n seeded tokens.
func text(n int, seed uint64) []int32 {
	rng := rand.New(rand.NewPCG(seed, 9))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(smallConfig().Vocab))
	}
	return ids
}

// TestBatchesEqualSingleRuns decodes three sequences of unequal length together,
// prompts and single tokens mixed in one Forward, and each alone: the logits are
// the same to the bit in every type, since no row depends on another sequence.
func TestBatchesEqualSingleRuns(t *testing.T) {
	w := small(t)
	texts := [][]int32{text(31, 1), text(17, 2), text(5, 3)}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		t.Run(dtype.String(), func(t *testing.T) {
			dev := newDevice(t)
			alone := make([][][]float32, len(texts))
			for i, ids := range texts {
				s := open(t, w, dtype, llama.Options{Sequences: 1, BlockSize: 3}, dev)
				for _, id := range ids {
					alone[i] = append(alone[i], forward(t, s, llama.Row{Token: id})...)
				}
			}
			s := open(t, w, dtype, llama.Options{Sequences: len(texts), BlockSize: 4}, dev, atb.WithPolicy("overall"))
			pieces := [][]int{{3, 0, 1}, {0, 5, 1}, {1, 1, 1}, {16, 1, 1}, {1, 9, 1}, {1, 1, 0}, {9, 0, 0}}
			for _, p := range pieces {
				var rows []llama.Row
				for seq, n := range p {
					for i := range n {
						rows = append(rows, llama.Row{Seq: seq, Token: texts[seq][s.Length(seq)+i]})
					}
				}
				at := []int{s.Length(0), s.Length(1), s.Length(2)}
				for i, logits := range forward(t, s, rows...) {
					seq := rows[i].Seq
					require.Equal(t, alone[seq][at[seq]], logits, "sequence %d position %d", seq, at[seq])
					at[seq]++
				}
			}
			require.Equal(t, []int{31, 17, 5}, []int{s.Length(0), s.Length(1), s.Length(2)})
		})
	}
}

// TestLongContextsEqualSingleRuns: attention over a thousand positions, which is
// worth cutting into parts, gives the same bits alone and beside others, for any
// number of workers.
func TestLongContextsEqualSingleRuns(t *testing.T) {
	cfg := smallConfig()
	cfg.Dim, cfg.Heads, cfg.KVHeads, cfg.MaxSeq = 64, 2, 1, 1200
	w, err := llama.Random(cfg, 11)
	require.NoError(t, err)
	var want []float32
	for _, workers := range []int{1, 3} {
		for _, batch := range []int{1, 4} {
			s := open(t, w, tensor.Float32, llama.Options{Sequences: batch, BlockSize: 16}, newDevice(t, cpu.WithWorkers(workers)))
			var rows []llama.Row
			for seq := range batch {
				for i := range 1100 / (seq + 1) {
					rows = append(rows, llama.Row{Seq: seq, Token: int32((i*7 + seq) % cfg.Vocab)})
				}
			}
			for piece := range slices.Chunk(rows, 400) {
				forward(t, s, piece...)
			}
			rows = rows[:0]
			for seq := range batch {
				rows = append(rows, llama.Row{Seq: seq, Token: 5})
			}
			got := forward(t, s, rows...)[0]
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "%d workers, batch of %d", workers, batch)
		}
	}
}

// TestNothingChangesTheLogits runs one text under every policy, solver, block
// size and prefill length, on streams of their own and inline: bit for bit the
// same.
func TestNothingChangesTheLogits(t *testing.T) {
	w := small(t)
	ids := text(40, 4)
	var want [][]float32
	run := func(name string, prefill int, o llama.Options, devOpts []cpu.Option, opts ...atb.Option) {
		t.Run(name, func(t *testing.T) {
			s := open(t, w, tensor.Float32, o, newDevice(t, devOpts...), opts...)
			var got [][]float32
			for piece := range slices.Chunk(ids, prefill) {
				var rows []llama.Row
				for _, id := range piece {
					rows = append(rows, llama.Row{Token: id})
				}
				got = append(got, forward(t, s, rows...)...)
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got)
		})
	}
	one := llama.Options{Sequences: 1, BlockSize: 16}
	for _, policy := range policies {
		run("policy="+policy, 1, one, nil, atb.WithPolicy(policy))
		run("inline/policy="+policy, 1, one, []cpu.Option{cpu.WithInline()}, atb.WithPolicy(policy))
	}
	for solver := range mempool.SolverType(mempool.SolverTypes) {
		run(fmt.Sprintf("solver=%d", solver), 1, one, nil, atb.WithSolver(solver), atb.WithTilingCaches(int(solver)%4))
	}
	for _, prefill := range []int{3, 7, 40} {
		run(fmt.Sprintf("prefill=%d", prefill), prefill, one, nil)
	}
	for _, block := range []int{1, 2, 39, 40, 1000} {
		run(fmt.Sprintf("block=%d", block), 1, llama.Options{Sequences: 2, BlockSize: block}, nil)
	}
	for _, workers := range []int{1, 3} {
		run(fmt.Sprintf("workers=%d", workers), 1, one, []cpu.Option{cpu.WithWorkers(workers)})
	}
}

func TestForwardRefusesAndTakesBack(t *testing.T) {
	w := small(t)
	s := open(t, w, tensor.Float32, llama.Options{Sequences: 2, BlockSize: 4}, newDevice(t))
	ids := text(40, 5)
	var want [][]float32
	for _, id := range ids {
		want = append(want, forward(t, s, llama.Row{Seq: 0, Token: id})...)
	}
	require.NoError(t, s.Rewind(0, 2))
	row := func(seq int, id int32) llama.Row { return llama.Row{Seq: seq, Token: id} }
	for _, c := range []struct {
		name string
		rows []llama.Row
		want []int32
		text string
	}{
		{"no rows", nil, []int32{0}, "at least 1 row"},
		{"no wanted rows", []llama.Row{row(0, 1)}, nil, "at least 1 row"},
		{"a sequence above", []llama.Row{row(1, 1), row(2, 1)}, []int32{0}, "row 1: want a sequence below 2, got 2"},
		{"a negative sequence", []llama.Row{row(-1, 1)}, []int32{0}, "got -1"},
		{"a token above", []llama.Row{row(0, 40)}, []int32{0}, "want a token below 40, got 40"},
		{"a negative token", []llama.Row{row(0, -1)}, []int32{0}, "got -1"},
		{"a wanted row above", []llama.Row{row(0, 1)}, []int32{1}, "wanted row 0: want below 1, got 1"},
		{"a full sequence", []llama.Row{row(1, 1), row(0, 1), row(0, 1), row(0, 1)}, []int32{0}, "row 3: sequence 0 is full at 40 positions"},
	} {
		_, err := s.Forward(t.Context(), c.rows, c.want)
		require.ErrorContains(t, err, c.text, c.name)
		require.Equal(t, []int{38, 0}, []int{s.Length(0), s.Length(1)}, c.name)
	}
	for pos := 38; pos < 40; pos++ {
		require.Equal(t, want[pos], forward(t, s, row(0, ids[pos]))[0], "position %d", pos)
	}
	require.ErrorContains(t, s.Rewind(2, 0), "below 2")
	require.ErrorContains(t, s.Rewind(0, 41), "at most the 40 positions")
	require.ErrorContains(t, s.Rewind(0, -1), "got -1")
	require.ErrorContains(t, s.Reset(-1), "below 2")
	require.Zero(t, s.Length(9))
	require.NoError(t, s.Reset(0))
	require.Zero(t, s.Length(0))
	require.Equal(t, want[0], forward(t, s, row(0, ids[0]))[0])
}

// TestCancelledForward cancels a Forward whose work is held: the sequences are
// as before, and the next Forward waits before it touches the memory that the
// held work reads.
func TestCancelledForward(t *testing.T) {
	w := small(t)
	ids := text(3, 6)
	dev := newDevice(t)
	s := open(t, w, tensor.Float32, llama.Options{Sequences: 1, BlockSize: 4}, dev)
	var want [][]float32
	for _, id := range ids {
		want = append(want, forward(t, s, llama.Row{Token: id})...)
	}

	c := newContext(t, dev)
	defer func() { require.NoError(t, c.Close()) }()
	m, err := llama.Upload(c, w, tensor.Float32)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	held, err := llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 4})
	require.NoError(t, err)
	defer func() { require.NoError(t, held.Close()) }()
	require.Equal(t, want[0], forward(t, held, llama.Row{Token: ids[0]})[0])
	gate, err := dev.NewEvent()
	require.NoError(t, err)
	stream, err := c.Stream(0)
	require.NoError(t, err)
	other, err := dev.NewStream()
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	release := sync.OnceFunc(func() { require.NoError(t, other.Record(gate)) })
	defer release()
	require.NoError(t, stream.Wait(gate))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = held.Forward(ctx, []llama.Row{{Token: ids[2]}}, []int32{0})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, held.Length(0))
	enqueued := stream.Stats()
	_, err = held.Forward(ctx, []llama.Row{{Token: ids[2]}}, []int32{0})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, enqueued.Copies, stream.Stats().Copies, "nothing is enqueued while the first is held")
	require.Equal(t, 1, held.Length(0))
	release()
	for _, pos := range []int{1, 2} {
		require.Equal(t, want[pos], forward(t, held, llama.Row{Token: ids[pos]})[0], "position %d", pos)
	}
}

func TestNewSessionRefuses(t *testing.T) {
	w := small(t)
	dev, other := newDevice(t), newDevice(t)
	c, far := newContext(t, dev), newContext(t, other)
	defer c.Close()
	defer far.Close()
	m, err := llama.Upload(c, w, tensor.Float32)
	require.NoError(t, err)
	ok := llama.Options{Sequences: 1, BlockSize: 4}
	for name, f := range map[string]func() (*llama.Session, error){
		"a nil context":  func() (*llama.Session, error) { return llama.NewSession(nil, m, ok) },
		"a nil model":    func() (*llama.Session, error) { return llama.NewSession(c, nil, ok) },
		"another device": func() (*llama.Session, error) { return llama.NewSession(far, m, ok) },
		"no sequence":    func() (*llama.Session, error) { return llama.NewSession(c, m, llama.Options{BlockSize: 4}) },
		"no block size":  func() (*llama.Session, error) { return llama.NewSession(c, m, llama.Options{Sequences: 1}) },
		"huge blocks": func() (*llama.Session, error) {
			return llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: math.MaxInt})
		},
		"too many of them": func() (*llama.Session, error) {
			return llama.NewSession(c, m, llama.Options{Sequences: 1 << 28, BlockSize: 4})
		},
		"memory for no one": func() (*llama.Session, error) {
			return llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 1<<31 - 1})
		},
	} {
		_, err := f()
		if name != "memory for no one" { // a device may have it
			assert.Error(t, err, name)
		}
	}
	require.NoError(t, m.Close())
	_, err = llama.NewSession(c, m, ok)
	require.ErrorContains(t, err, "open model")
	for name, f := range map[string]func() (*llama.Model, error){
		"a nil context": func() (*llama.Model, error) { return llama.Upload(nil, w, tensor.Float32) },
		"nil weights":   func() (*llama.Model, error) { return llama.Upload(c, nil, tensor.Float32) },
		"an int type":   func() (*llama.Model, error) { return llama.Upload(c, w, tensor.Int8) },
		"lost layers": func() (*llama.Model, error) {
			short := *w
			short.Layers = w.Layers[:1]
			return llama.Upload(c, &short, tensor.Float32)
		},
		"a lost weight": func() (*llama.Model, error) {
			short := *w
			short.FinalNorm = w.FinalNorm[1:]
			return llama.Upload(c, &short, tensor.Float32)
		},
	} {
		_, err := f()
		assert.Error(t, err, name)
	}
}

// TestCloseInAnyOrder closes session, model, context and device in all 24
// orders, each twice.
func TestCloseInAnyOrder(t *testing.T) {
	w := small(t)
	for i := range 24 {
		order, left := []int{}, []int{0, 1, 2, 3}
		for n := range left {
			j := i / []int{1, 4, 12, 24}[n] % (4 - n)
			order = append(order, left[j])
			left = slices.Delete(left, j, j+1)
		}
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			dev, err := cpu.New()
			require.NoError(t, err)
			c := newContext(t, dev, atb.WithPolicy(policies[i%3]))
			m, err := llama.Upload(c, w, tensor.Float32)
			require.NoError(t, err)
			s, err := llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 4})
			require.NoError(t, err)
			forward(t, s, llama.Row{Token: 1})
			closers := []func() error{s.Close, m.Close, c.Close, dev.Close}
			for n, k := range order {
				require.NoError(t, closers[k](), "closing number %d", n)
				require.NoError(t, closers[k](), "closing number %d again", n)
				_, err := s.Forward(t.Context(), []llama.Row{{Token: 1}}, []int32{0})
				require.Error(t, err, "forward after closing number %d", n)
			}
		})
	}
}

// TestSteadySteps decodes two sequences of unequal length, each step one longer:
// every Setup is a hit, nothing is allocated and each kernel that depends on
// lengths is tiled at most once. Steps at one length tile nothing.
func TestSteadySteps(t *testing.T) {
	w := small(t)
	w.Config.MaxSeq = 400
	for _, policy := range policies {
		t.Run("model=random/policy="+policy, func(t *testing.T) { steadySteps(t, w, policy) })
	}
	for _, policy := range policies {
		t.Run("model=stories260K/policy="+policy, func(t *testing.T) {
			w, _, err := llama.LoadDir(stories(t))
			require.NoError(t, err)
			steadySteps(t, w, policy)
		})
	}
}

func steadySteps(t *testing.T, w *llama.Weights, policy string) {
	c := newContext(t, newDevice(t), atb.WithPolicy(policy))
	defer func() { require.NoError(t, c.Close()) }()
	m, err := llama.Upload(c, w, tensor.Float32)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	s, err := llama.NewSession(c, m, llama.Options{Sequences: 2, BlockSize: 16})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	forward(t, s, llama.Row{Token: 1}, llama.Row{Token: 3}, llama.Row{Token: 7})
	rows, want := []llama.Row{{Seq: 0, Token: 5}, {Seq: 1, Token: 6}}, []int32{0, 1}
	ctx := t.Context()
	step := func() {
		if _, err := s.Forward(ctx, rows, want); err != nil {
			t.Error(err)
		}
	}
	for range 140 { // every ring block has its event by then
		step()
	}
	const steps = 100
	steady := func(step func()) int64 {
		before := c.Stats()
		require.Zero(t, testing.AllocsPerRun(steps-1, step)) // one more as warm-up
		after := c.Stats()
		require.Equal(t, after.Setups-before.Setups, after.SetupHits-before.SetupHits, "every setup is a hit")
		require.Equal(t, int64(steps*(len(w.Layers)+2)), after.Setups-before.Setups)
		return after.HostTilings - before.HostTilings
	}
	grown := steady(step)
	require.LessOrEqual(t, grown, int64(steps*lengthKernels(t, s)*len(w.Layers)), "at most one tiling per length-dependent kernel")
	require.Positive(t, grown)
	fixed := steady(func() {
		for seq := range 2 {
			if err := s.Rewind(seq, 1); err != nil {
				t.Error(err)
			}
		}
		step()
	})
	require.Zero(t, fixed, "no tiling at the lengths of the step before")
}

// lengthKernels counts the kernels of a layer whose tilings read host values
// that differ from step to step: those that read the contexts.
func lengthKernels(t *testing.T, s *llama.Session) int {
	op, _ := s.Layer(0)
	g := op.Graph()
	n := 0
	for i := range g.Nodes {
		for _, v := range g.Nodes[i].Val {
			if g.Tensors[v].Name == "contexts" {
				n++
			}
		}
	}
	require.Positive(t, n)
	return n
}

func TestObserverSeesEveryStage(t *testing.T) {
	w := small(t)
	var spans []llama.Span
	s := open(t, w, tensor.Float32, llama.Options{Sequences: 1, BlockSize: 4, Observe: func(x llama.Span) { spans = append(spans, x) }}, newDevice(t))
	forward(t, s, llama.Row{Token: 1})
	var got []string
	kernels := int64(0)
	for i, x := range spans {
		got = append(got, x.Stage+" "+x.Op)
		kernels += x.Kernels
		require.False(t, x.End.Before(x.Start))
		require.True(t, i == 0 || !x.Start.Before(spans[i-1].End), "spans follow one another")
	}
	require.Equal(t, []string{"setup embed", "setup layer", "setup layer", "setup head", "execute embed", "execute layer", "execute layer", "execute head", "wait "}, got)
	require.Equal(t, s.Timing().Kernels, kernels)
}
