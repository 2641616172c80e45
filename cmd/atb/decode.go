package main

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"time"

	"goatb/atb"
	"goatb/model/llama"
)

// decoder drives one session: it feeds the prompt and then its own tokens.
type decoder struct {
	cmd     *generateCmd
	c       *atb.Context
	s       *llama.Session
	sampler *llama.Sampler
	rows    []llama.Row
	want    []int32
	vocab   int
	logits  map[string][]float32
	line    *timeline
}

// run generates cmd.Steps tokens for every sequence of the batch, which all
// have the same prompt; it reports the first.
func (d *decoder) run(ctx context.Context, prompt []int32) (*runReport, error) {
	d.logits = map[string][]float32{}
	r := &runReport{}
	start := time.Now()
	next, err := d.prefill(ctx, prompt)
	if err != nil {
		return nil, err
	}
	r.PrefillNs = time.Since(start).Nanoseconds()
	ids := [][]int32{}
	for _, id := range next {
		ids = append(ids, append(make([]int32, 0, d.cmd.Steps), id))
	}
	steps := make([]llama.Timing, 0, d.cmd.Steps)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start = time.Now()
	for range d.cmd.Steps - 1 {
		if err := d.step(ctx, next); err != nil {
			return nil, err
		}
		for i, id := range next {
			ids[i] = append(ids[i], id)
		}
		steps = append(steps, d.s.Timing())
	}
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	if n := len(steps); n > 0 {
		r.TokensPerSecond = float64(n*len(next)) / elapsed.Seconds()
		r.AllocsPerStep = float64(after.Mallocs-before.Mallocs) / float64(n)
	}
	r.IDs, r.Logits = ids[0], d.logits
	d.count(r, steps)
	return r, nil
}

// prefill feeds the prompt of every sequence in pieces and returns the first
// generated tokens.
func (d *decoder) prefill(ctx context.Context, prompt []int32) ([]int32, error) {
	next := make([]int32, d.cmd.Batch)
	for seq := range next {
		for at := 0; at < len(prompt); at += d.cmd.Prefill {
			piece := prompt[at:min(at+d.cmd.Prefill, len(prompt))]
			d.rows, d.want = d.rows[:0], d.want[:0]
			for i, id := range piece {
				d.rows = append(d.rows, llama.Row{Seq: seq, Token: id})
				d.want = append(d.want, int32(i))
			}
			logits, err := d.forward(ctx)
			if err != nil {
				return nil, err
			}
			d.vocab = len(logits) / len(piece)
			for i := range piece {
				d.keep(seq, at+i, logits[i*d.vocab:(i+1)*d.vocab])
			}
			next[seq] = d.sampler.Next(logits[(len(piece)-1)*d.vocab:])
		}
	}
	return next, nil
}

// step computes one token of every sequence; next goes in and comes out.
func (d *decoder) step(ctx context.Context, next []int32) error {
	d.rows, d.want = d.rows[:0], d.want[:0]
	for seq, id := range next {
		d.rows = append(d.rows, llama.Row{Seq: seq, Token: id})
		d.want = append(d.want, int32(seq))
	}
	pos := d.s.Length(0)
	logits, err := d.forward(ctx)
	if err != nil {
		return err
	}
	for seq := range next {
		row := logits[seq*d.vocab : (seq+1)*d.vocab]
		d.keep(seq, pos, row)
		next[seq] = d.sampler.Next(row)
	}
	return nil
}

// forward computes the rows and notes the host's time.
func (d *decoder) forward(ctx context.Context) ([]float32, error) {
	start := time.Now()
	logits, err := d.s.Forward(ctx, d.rows, d.want)
	t := d.s.Timing()
	d.line.host("Setup", start, t.Setup)
	d.line.host("Execute", start.Add(t.Setup), t.Execute)
	return logits, err
}

// keep stores the logits of sequence 0 at the positions asked for.
func (d *decoder) keep(seq, pos int, logits []float32) {
	if seq == 0 && slices.Contains(d.cmd.Logits, pos) {
		d.logits[strconv.Itoa(pos)] = slices.Clone(logits)
	}
}

// count fills the report from the context's counters and the steps' times.
func (d *decoder) count(r *runReport, steps []llama.Timing) {
	st := d.c.Stats()
	r.HostTilings, r.SetupHits, r.BytesMoved, r.WorkspaceBytes = st.HostTilings, st.SetupHits, st.BytesMoved, st.WorkspaceBytes
	r.Cache = cacheReport{st.LocalHits, st.GlobalHits, st.Misses}
	r.RingStalls = st.HostRing.Stalls + st.DeviceRing.Stalls
	r.ArenaLowerBound = d.s.LowerBound()
	if len(steps) == 0 {
		return
	}
	median := func(f func(llama.Timing) int64) int64 {
		v := make([]int64, len(steps))
		for i, t := range steps {
			v[i] = f(t)
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	r.SetupNs = median(func(t llama.Timing) int64 { return t.Setup.Nanoseconds() })
	r.ExecuteNs = median(func(t llama.Timing) int64 { return t.Execute.Nanoseconds() })
	r.KernelsPerStep = median(func(t llama.Timing) int64 { return t.Kernels })
}
