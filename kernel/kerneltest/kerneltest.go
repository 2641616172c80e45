// Package kerneltest runs one kernel on plain memory and checks what every
// kernel promises: equal problems give equal tilings, blocks may run in any
// order and at once, inputs stay as they were, nothing outside the operands is
// written or matters, every output byte is defined, and the result is the same
// for every number of workers.
package kerneltest

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

const canary = 64

// canaryBytes surround operands, one for each block order: a kernel that reads
// them gives other results.
var canaryBytes = [...]byte{0xa5, 0xff, 0x3c}

// Case is one problem with its data.
type Case struct {
	Kernel *kernel.Kernel
	// Problem is complete: descriptors, params, values. Machine.Cores is set
	// by Run for each worker count.
	Problem kernel.Problem
	// In holds the bytes of each input, nil for an absent operand.
	In [][]byte
	// InPlace maps an output to the input whose memory it is.
	InPlace map[int]int
	// Keep says that output bytes which the kernel does not write are legal
	// (a cache that is written at some slots): such outputs start as zeros.
	Keep bool
	// Workers lists the worker counts to try; nil means 1, 2, 3 and 16.
	Workers []int
	// Varies says that results may differ in rounding between worker counts;
	// then only the first count's outputs are returned and compared.
	Varies bool
}

// Run runs the case for every worker count, the last of which in every block order,
// and returns the outputs.
func Run(t testing.TB, c Case) [][]byte {
	t.Helper()
	workers := c.Workers
	if workers == nil {
		workers = []int{1, 2, 3, 16}
	}
	var first [][]byte
	var scratch []byte
	for i, n := range workers {
		p := c.Problem
		p.Machine.Cores = n
		fillMachine(&p.Machine)
		if need := guardedBytes(c.Kernel.Scratch(&p)); len(scratch) < need {
			scratch = device.BytesOf(make([]uint64, need/8))
		}
		for order := range canaryBytes {
			if i < len(workers)-1 && order != i%len(canaryBytes) {
				continue // every order once, and all of them with the most workers
			}
			out := c.runOnce(t, &p, order, scratch)
			switch {
			case first == nil:
				first = out
			case !c.Varies || n == workers[0]:
				for i := range out {
					require.True(t, bytes.Equal(first[i], out[i]), "%s: output %d differs with %d workers, block order %d", c.Kernel.Name(), i, n, order)
				}
			}
		}
	}
	return first
}

func fillMachine(m *kernel.Machine) {
	if m.L1 == 0 {
		m.L1, m.L2, m.L3 = 32<<10, 1<<20, 32<<20
	}
}

// guarded is memory between canaries. Its payload is 64-byte aligned.
type guarded struct {
	whole, payload []byte
	start, size    int
	canary         byte
}

// guardedBytes is the size of the memory for n bytes between canaries.
func guardedBytes(n int64) int { return int(n+2*canary+64+7) &^ 7 }

// newGuarded makes memory for n bytes, whose contents are not defined.
func newGuarded(n int64, order int) guarded {
	return guard(device.BytesOf(make([]uint64, guardedBytes(n)/8)), n, order)
}

// guard puts canaries around n bytes of mem.
func guard(mem []byte, n int64, order int) guarded {
	g := guarded{whole: mem[:guardedBytes(n)], start: canary, size: int(n), canary: canaryBytes[order]}
	for !aligned(g.whole[g.start:]) {
		g.start++
	}
	for _, around := range g.around() {
		for i := range around {
			around[i] = g.canary
		}
	}
	g.payload = g.whole[g.start : g.start+g.size : g.start+g.size]
	return g
}

// around is the memory before and behind the payload.
func (g guarded) around() [2][]byte {
	return [2][]byte{g.whole[:g.start], g.whole[g.start+g.size:]}
}

func (g guarded) check(t testing.TB, what string, i int) {
	t.Helper()
	for _, around := range g.around() {
		for j, v := range around {
			if v != g.canary {
				require.FailNow(t, "memory around an operand was written", "%s %d: byte %d of the %d around %d", what, i, j, len(around), len(g.payload))
			}
		}
	}
}

// runOnce runs the case once; memory is room for the guarded scratch.
func (c *Case) runOnce(t testing.TB, p *kernel.Problem, order int, memory []byte) [][]byte {
	t.Helper()
	k := c.Kernel
	require.NoError(t, k.Supports(p), k.Name())
	in := make([]guarded, len(p.In))
	args := device.Args{Buffers: make([]device.Buffer, len(p.In)+len(p.Out))}
	for i := range p.In {
		if c.In[i] == nil {
			continue
		}
		in[i] = newGuarded(int64(len(c.In[i])), order)
		copy(in[i].payload, c.In[i])
		args.Buffers[i] = device.Wrap(in[i].payload)
	}
	out := make([]guarded, len(p.Out))
	for i := range p.Out {
		if src, ok := c.InPlace[i]; ok {
			out[i] = in[src]
		} else if n := p.Out[i].Bytes(); n > 0 {
			out[i] = newGuarded(n, order)
			if c.Keep {
				clear(out[i].payload)
			} else {
				poison(out[i].payload, byte(order))
			}
		} else {
			continue
		}
		args.Buffers[len(p.In)+i] = device.Wrap(out[i].payload)
	}
	scratch := guard(memory, k.Scratch(p), order)
	poison(scratch.payload, byte(order)+1)
	args.Scratch = device.Wrap(scratch.payload)
	tiling := newGuarded(int64(k.TilingSize(p)), order)
	grid := tile(t, k, p, tiling.payload)
	args.Tiling, args.Key, args.Blocks = tiling.payload, grid.Key, grid.Blocks
	before := bytes.Clone(tiling.payload)
	runBlocks(t, k, &args, order)
	require.True(t, bytes.Equal(before, tiling.payload), "%s changed its tiling", k.Name())
	require.NotNil(t, k.Program().Cost, "%s: want a cost", k.Name())
	cost := k.Program().Cost(tiling.payload, grid.Key, grid.Blocks)
	require.True(t, cost.Flops >= 0 && cost.Bytes >= 0, "%s: cost %+v", k.Name(), cost)
	scratch.check(t, k.Name()+": scratch", 0)
	tiling.check(t, k.Name()+": tiling", 0)
	return c.collect(t, in, out)
}

func (c *Case) collect(t testing.TB, in, out []guarded) [][]byte {
	t.Helper()
	written := map[int]bool{}
	for _, src := range c.InPlace {
		written[src] = true
	}
	for i, g := range in {
		if g.whole == nil {
			continue
		}
		g.check(t, c.Kernel.Name()+": input", i)
		if !written[i] {
			require.True(t, bytes.Equal(c.In[i], g.payload), "%s changed input %d", c.Kernel.Name(), i)
		}
	}
	res := make([][]byte, len(out))
	for i, g := range out {
		if g.whole == nil {
			continue
		}
		g.check(t, c.Kernel.Name()+": output", i)
		res[i] = bytes.Clone(g.payload)
	}
	return res
}

// tile computes the tiling twice, into memory with different old contents.
func tile(t testing.TB, k *kernel.Kernel, p *kernel.Problem, dst []byte) kernel.Grid {
	t.Helper()
	poison(dst, 0x11)
	g1, err := k.Tile(p, dst)
	require.NoError(t, err, k.Name())
	again := newGuarded(int64(len(dst)), 0)
	poison(again.payload, 0xee)
	g2, err := k.Tile(p, again.payload)
	require.NoError(t, err, k.Name())
	require.Equal(t, g1, g2, "%s: tiling is not a function of its problem", k.Name())
	require.True(t, bytes.Equal(dst, again.payload), "%s: tiling is not a function of its problem", k.Name())
	tileFromBytes(t, k, p, dst, g1)
	return g1
}

func runBlocks(t testing.TB, k *kernel.Kernel, a *device.Args, order int) {
	t.Helper()
	require.NoError(t, k.Program().Prepare(a), k.Name())
	run := k.Program().Run
	switch order {
	case 0:
		for b := range a.Blocks {
			require.NoError(t, run(a, b), "%s block %d", k.Name(), b)
		}
	case 1:
		shares := cuts(rand.New(rand.NewPCG(7, 7)), a.Blocks)
		for _, s := range shares {
			if share := k.Program().Share; share != nil {
				require.NoError(t, share(a, s[0], s[1]), "%s blocks %d to %d", k.Name(), s[0], s[1])
				continue
			}
			for b := s[0]; b < s[1]; b++ {
				require.NoError(t, run(a, b), "%s block %d", k.Name(), b)
			}
		}
	default:
		errs := make([]error, a.Blocks)
		var wg sync.WaitGroup
		for b := range a.Blocks {
			wg.Go(func() { errs[b] = run(a, b) })
		}
		wg.Wait()
		for b, err := range errs {
			require.NoError(t, err, "%s block %d", k.Name(), b)
		}
	}
}

// cuts cuts n blocks into shares, which it shuffles.
func cuts(r *rand.Rand, n int) (shares [][2]int) {
	for at := 0; at < n; {
		end := min(at+1+r.IntN(3), n)
		shares = append(shares, [2]int{at, end})
		at = end
	}
	r.Shuffle(len(shares), func(i, j int) { shares[i], shares[j] = shares[j], shares[i] })
	return shares
}

// poison fills memory with values that make a float NaN and an integer large,
// different for every pattern, so that an unwritten element shows as a
// difference between two runs.
func poison(b []byte, pattern byte) {
	n := min(4, len(b)) // the pattern's period
	for i := range n {
		b[i] = 0xff - pattern&1<<uint(i&3)
	}
	for ; n < len(b) && n > 0; n *= 2 {
		copy(b[n:], b[:n])
	}
}

// Desc is shorthand for tensor.Of.
func Desc(t tensor.DType, dims ...int64) tensor.Desc { return tensor.Of(t, dims...) }

func aligned(b []byte) bool { return addr(b)%64 == 0 }
