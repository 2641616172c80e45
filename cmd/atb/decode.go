package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"time"

	"goatb/atb"
	"goatb/model/llama"
)

// decoder drives one session: it feeds the prompt and then its own tokens.
type decoder struct {
	cmd      *generateCmd
	c        *atb.Context
	s        *llama.Session
	sampler  *llama.Sampler
	progress *progress
	vocab    int
	now      func() time.Time // the host's clock

	rows   []llama.Row
	want   []int32
	next   []int32   // last token of each sequence
	ids    [][]int32 // tokens of each sequence
	times  []llama.Timing
	logits map[string][]float32
	loaded atb.Stats // when the model was loaded: what comes later is the run's
}

// run generates cmd.Steps tokens for every sequence of the batch.
func (d *decoder) run(ctx context.Context, prompt []int32) (*runReport, error) {
	d.loaded = d.c.Stats()
	d.logits = map[string][]float32{}
	d.next = make([]int32, d.cmd.Batch)
	r := &runReport{}
	runtime.GC() // what loading has left is not collected while steps are timed
	start := d.now()
	for seq := range d.next {
		if err := d.prefill(ctx, seq, prompt); err != nil {
			return nil, err
		}
		d.ids = append(d.ids, append(make([]int32, 0, d.cmd.Steps), d.next[seq]))
	}
	r.PrefillNs = d.now().Sub(start).Nanoseconds()
	d.times = make([]llama.Timing, 0, d.cmd.Steps)
	n := d.cmd.Steps - 1
	first, err := d.steps(ctx, n/2)
	if err != nil {
		return nil, err
	}
	allocs := mallocs()
	second, err := d.steps(ctx, n-n/2)
	if err != nil {
		return nil, err
	}
	if allocs = mallocs() - allocs; n > 0 {
		r.TokensPerSecond = float64(n*d.cmd.Batch) / (first + second).Seconds()
		r.AllocsPerStep = float64(allocs) / float64(n-n/2)
	}
	r.IDs, r.all, r.Logits = d.ids[0], d.ids, d.logits
	d.count(r)
	return r, nil
}

// prefill feeds the prompt of a sequence in pieces and takes its first token.
func (d *decoder) prefill(ctx context.Context, seq int, prompt []int32) error {
	for at := 0; at < len(prompt); at += d.cmd.Prefill {
		piece := prompt[at:min(at+d.cmd.Prefill, len(prompt))]
		d.rows, d.want = d.rows[:0], d.want[:0]
		for i, id := range piece {
			d.rows = append(d.rows, llama.Row{Seq: seq, Token: id})
			if i == len(piece)-1 || d.keeps(seq, at+i) {
				d.want = append(d.want, int32(i))
			}
		}
		logits, err := d.s.Forward(ctx, d.rows, d.want)
		if err != nil {
			return err
		}
		for i, row := range d.want {
			d.keep(seq, at+int(row), logits[i*d.vocab:(i+1)*d.vocab])
		}
		if at+len(piece) == len(prompt) {
			if d.next[seq], err = d.sampler.Next(logits[(len(d.want)-1)*d.vocab:]); err != nil {
				return fmt.Errorf("position %d: %w", len(prompt)-1, err)
			}
		}
		if d.progress.due() {
			d.progress.printf("generate: %s: %d of %d tokens of prompt %d of %d", d.c.Policy(), at+len(piece), len(prompt), seq+1, d.cmd.Batch)
		}
	}
	return nil
}

// mallocs is the number of heap allocations so far but for some of the last ones of
// each size: to know those too, all goroutines would have to stop.
func mallocs() uint64 {
	m := [1]metrics.Sample{{Name: "/gc/heap/allocs:objects"}}
	metrics.Read(m[:])
	return m[0].Value.Uint64()
}

// steps runs n steps and returns their time.
func (d *decoder) steps(ctx context.Context, n int) (time.Duration, error) {
	start := d.now()
	for range n {
		if err := d.step(ctx); err != nil {
			return 0, err
		}
		d.times = append(d.times, d.s.Timing())
		if d.progress.due() {
			d.progress.printf("generate: %s: %d of %d steps", d.c.Policy(), len(d.times)+1, d.cmd.Steps)
		}
	}
	return d.now().Sub(start), nil
}

// step computes one token of every sequence.
func (d *decoder) step(ctx context.Context) error {
	d.rows, d.want = d.rows[:0], d.want[:0]
	for seq, id := range d.next {
		d.rows = append(d.rows, llama.Row{Seq: seq, Token: id})
		d.want = append(d.want, int32(seq))
	}
	pos := d.s.Length(0)
	logits, err := d.s.Forward(ctx, d.rows, d.want)
	if err != nil {
		return err
	}
	for seq := range d.next {
		row := logits[seq*d.vocab : (seq+1)*d.vocab]
		d.keep(seq, pos, row)
		if d.next[seq], err = d.sampler.Next(row); err != nil {
			return fmt.Errorf("position %d: %w", pos, err)
		}
		d.ids[seq] = append(d.ids[seq], d.next[seq])
	}
	return nil
}

// keeps says whether logits are wanted: those of sequence 0 at the positions
// asked for.
func (d *decoder) keeps(seq, pos int) bool { return seq == 0 && slices.Contains(d.cmd.Logits, pos) }

func (d *decoder) keep(seq, pos int, logits []float32) {
	if d.keeps(seq, pos) {
		d.logits[strconv.Itoa(pos)] = slices.Clone(logits)
	}
}

// count fills the report from the context's counters and the steps' times.
func (d *decoder) count(r *runReport) {
	st, old := d.c.Stats(), &d.loaded
	r.HostTilings, r.DeviceTilings = st.HostTilings-old.HostTilings, st.DeviceTilings-old.DeviceTilings
	r.SetupHits, r.BytesMoved, r.WorkspaceBytes = st.SetupHits-old.SetupHits, st.BytesMoved-old.BytesMoved, st.WorkspaceBytes
	r.Captures, r.Replays, r.Fallbacks = st.Captures-old.Captures, st.Replays-old.Replays, fallbackEntries(st.FallbackReasons)
	r.Cache = cacheReport{st.LocalHits - old.LocalHits, st.GlobalHits - old.GlobalHits, st.Misses - old.Misses}
	r.RingStalls = st.HostRing.Stalls + st.DeviceRing.Stalls
	r.ArenaLowerBound = d.s.LowerBound()
	if len(d.times) == 0 {
		d.times = append(d.times, d.s.Timing()) // one token: its prefill is the only step
	}
	median := func(f func(llama.Timing) int64) int64 {
		v := make([]int64, len(d.times))
		for i, t := range d.times {
			v[i] = f(t)
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	r.SetupNs = median(func(t llama.Timing) int64 { return t.Setup.Nanoseconds() })
	r.ExecuteNs = median(func(t llama.Timing) int64 { return t.Execute.Nanoseconds() })
	r.KernelsPerStep = median(func(t llama.Timing) int64 { return t.Kernels })
}
