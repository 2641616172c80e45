package paged

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/internal/cpu"
	"goatb/kernel"
	"goatb/tensor"
)

// launch tiles and runs a kernel on plain memory, block after block, or all at
// once when parallel.
type launch struct {
	k    *kernel.Kernel
	p    kernel.Problem
	args device.Args
	errs []error
	wait sync.WaitGroup
}

func newLaunch(tb testing.TB, k *kernel.Kernel, p kernel.Problem, in [][]byte) *launch {
	tb.Helper()
	return launchOn(tb, k, p, in, runtime.GOMAXPROCS(0))
}

func launchOn(tb testing.TB, k *kernel.Kernel, p kernel.Problem, in [][]byte, cores int) *launch {
	tb.Helper()
	p.Machine = kernel.Machine{Cores: cores, L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}
	require.NoError(tb, k.Supports(&p))
	l := &launch{k: k, p: p}
	for _, b := range in {
		buf := device.Buffer{}
		if b != nil {
			buf = device.Wrap(b)
		}
		l.args.Buffers = append(l.args.Buffers, buf)
	}
	for i := range p.Out {
		l.args.Buffers = append(l.args.Buffers, device.Wrap(device.BytesOf(make([]uint64, (p.Out[i].Bytes()+7)/8))))
	}
	l.args.Scratch = device.Wrap(device.BytesOf(make([]uint64, k.Scratch(&p)/8)))
	l.args.Tiling = device.BytesOf(make([]uint64, k.TilingSize(&p)/8))
	l.tile(tb)
	l.errs = make([]error, p.Machine.Cores)
	return l
}

func (l *launch) tile(tb testing.TB) {
	grid, err := l.k.Tile(&l.p, l.args.Tiling)
	if err != nil {
		tb.Fatal(err)
	}
	l.args.Key, l.args.Blocks = grid.Key, grid.Blocks
}

func (l *launch) run(tb testing.TB) {
	if l.args.Blocks == 1 {
		l.errs[0] = l.k.Program().Run(&l.args, 0)
	} else {
		for b := range l.args.Blocks {
			l.wait.Go(func() { l.errs[b] = l.k.Program().Run(&l.args, b) })
		}
		l.wait.Wait()
	}
	for _, err := range l.errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// readNanos measures how long one core reads the operands in order: the limit of
// a launch on it.
func readNanos(in ...[]byte) float64 {
	read := gemm.Read(cpu.Active())
	if read == nil {
		return 0
	}
	best := time.Hour
	for range 5 {
		begin := time.Now()
		for _, mem := range in {
			read(&mem[0], len(mem)&^255)
		}
		best = min(best, time.Since(begin))
	}
	return float64(best.Nanoseconds())
}

// BenchmarkDecode measures one token per sequence over a context of 2048 on one
// core; the bytes are those of the keys and values read, best-limit is the fastest
// run's share of the rate at which a loop reads them in the same run.
func BenchmarkDecode(b *testing.B) {
	const context, bs = 2048, 128
	for _, batch := range []int64{1, 4} {
		for _, t := range []tensor.DType{f32, f16, bf16, tensor.Int8} {
			b.Run(fmt.Sprintf("batch=%d/dtype=%s", batch, t), func(b *testing.B) {
				s := setup{
					params: Params{Scale: 0.088, Heads: 32, KVHeads: 8},
					q:      t, kv: t, out: t, tokens: batch, dk: 128, dv: 128,
					bs: bs, columns: context / bs, blocks: batch * context / bs, seed: 5,
				}
				for range batch {
					s.contexts = append(s.contexts, context)
				}
				if t == tensor.Int8 {
					s.params.Quant, s.q, s.out = Dequant, f32, f32
				}
				pr := s.build()
				k, _, err := Attend.Select(&pr.p, kernel.Filter{})
				require.NoError(b, err)
				l := launchOn(b, k, pr.p, pr.in, 1)
				b.SetBytes(batch * context * 8 * 256 * t.Size())
				b.ReportAllocs()
				best, limit := time.Hour, readNanos(pr.in[InKey], pr.in[InValue])
				for b.Loop() {
					begin := time.Now()
					l.tile(b)
					l.run(b)
					best = min(best, time.Since(begin))
				}
				b.ReportMetric(limit/float64(best.Nanoseconds()), "best-limit")
				b.ReportMetric(float64(l.args.Blocks), "blocks")
			})
		}
	}
}

// BenchmarkSmall measures one token of a model of 8 heads of width 8 on one core:
// the tiling and the run, and each alone.
func BenchmarkSmall(b *testing.B) {
	for _, context := range []int64{16, 128, 256, 512} {
		s := plain()
		s.params.Heads, s.params.KVHeads, s.dk, s.dv = 8, 4, 8, 8
		s.tokens, s.bs, s.columns, s.blocks, s.contexts = 1, 16, 32, 32, []int64{context}
		pr := s.build()
		k, _, err := Attend.Select(&pr.p, kernel.Filter{})
		require.NoError(b, err)
		l := launchOn(b, k, pr.p, pr.in, 1)
		for _, x := range []struct {
			name      string
			tile, run bool
		}{{"both", true, true}, {"tile", true, false}, {"run", false, true}} {
			b.Run(fmt.Sprintf("context=%d/do=%s", context, x.name), func(b *testing.B) {
				b.ReportAllocs()
				const turns = 100
				best := time.Hour
				for b.Loop() {
					begin := time.Now()
					for range turns {
						if x.tile {
							l.tile(b)
						}
						if x.run {
							l.run(b)
						}
					}
					best = min(best, time.Since(begin))
				}
				b.ReportMetric(float64(best.Nanoseconds())/turns, "best-ns")
			})
		}
	}
}

// BenchmarkPrefill measures 512 query rows of a prompt on one core, which see the
// positions up to their own.
func BenchmarkPrefill(b *testing.B) {
	const rows, bs = 512, 16
	for _, context := range []int64{512, 2048} {
		for _, x := range []struct{ heads, kvHeads, dim int64 }{{8, 2, 64}, {8, 8, 64}, {8, 2, 128}} {
			for _, t := range []tensor.DType{f32, bf16} {
				b.Run(fmt.Sprintf("context=%d/heads=%d,%d/dim=%d/dtype=%s", context, x.heads, x.kvHeads, x.dim, t), func(b *testing.B) {
					s := setup{
						params: Params{Scale: 0.088, Heads: x.heads, KVHeads: x.kvHeads, QueryLens: true, Mask: Causal},
						q:      t, kv: t, out: t, tokens: rows, dk: x.dim, dv: x.dim,
						bs: bs, columns: context / bs, blocks: context / bs, seed: 5,
						contexts: []int64{context}, queryLens: []int64{rows},
					}
					pr := s.build()
					k, _, err := Attend.Select(&pr.p, kernel.Filter{})
					require.NoError(b, err)
					l := launchOn(b, k, pr.p, pr.in, 1)
					best := time.Hour
					for b.Loop() {
						begin := time.Now()
						l.run(b)
						best = min(best, time.Since(begin))
					}
					flops := k.Program().Cost(l.args.Tiling, 0, 1).Flops
					b.ReportMetric(float64(flops)/float64(best.Nanoseconds()), "best-GFLOP/s")
				})
			}
		}
	}
}
