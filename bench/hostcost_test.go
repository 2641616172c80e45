package bench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/operation/elementwise"
	"goatb/tiling"
)

// operands of the kernels that are compared: two inputs, one output.
const operands = 3

// round is the number of kernels between two waits: it keeps the queue from
// filling up, so that no launch waits for room.
const round = 480

// chain is a graph of additions, each a kernel of two inputs and one output.
func chain(tb testing.TB, nodes int) *atb.Op {
	tb.Helper()
	g := atb.BuildGraph("chain", []string{"t0", "w"}, []string{"y"})
	for i := range nodes {
		out := fmt.Sprintf("t%d", i+1)
		if i == nodes-1 {
			out = "y"
		}
		g.AddSpec(elementwise.Of(elementwise.Add), []string{fmt.Sprintf("t%d", i), "w"}, []string{out})
	}
	op, err := g.Build()
	require.NoError(tb, err)
	return op
}

// prepared is a chain that is set up, with its tensors.
type prepared struct {
	c    *atb.Context
	op   *atb.Op
	pack atb.VariantPack
	ws   atb.Buffer
}

func prepare(tb testing.TB, policy string, nodes int) *prepared {
	tb.Helper()
	dev, err := cpu.New()
	require.NoError(tb, err)
	c, err := atb.NewContext(dev, atb.WithPolicy(policy), atb.WithEnv(func(string) (string, bool) { return "", false }))
	require.NoError(tb, err)
	p := &prepared{c: c, op: chain(tb, nodes)}
	tb.Cleanup(func() {
		require.NoError(tb, p.op.Close())
		require.NoError(tb, c.Close())
		require.NoError(tb, dev.Close())
	})
	var ts [operands]atb.Tensor
	for i := range ts {
		ts[i], err = atb.FromSlice(c, make([]float32, 8), 8)
		require.NoError(tb, err)
	}
	p.pack = atb.VariantPack{In: ts[:2], Out: ts[2:]}
	size, err := p.op.Setup(p.pack, c)
	require.NoError(tb, err)
	p.ws, err = c.Workspace(size)
	require.NoError(tb, err)
	for range 300 { // every ring block has been used
		require.NoError(tb, p.op.Execute(p.pack, p.ws, c))
	}
	require.NoError(tb, c.Synchronize(tb.Context()))
	return p
}

// BenchmarkHostCost reports what the host spends: Setup of an unchanged graph,
// Setup and Execute per kernel, and an empty kernel launched straight on the
// device with as many operands. The device runs beside the host all the time.
func BenchmarkHostCost(b *testing.B) {
	for _, nodes := range []int{1, 12, 96} {
		b.Run(fmt.Sprintf("call=setup/nodes=%d", nodes), func(b *testing.B) {
			p := prepare(b, "kernel-follow", nodes)
			for b.Loop() {
				if _, err := p.op.Setup(p.pack, p.c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for _, policy := range tiling.Policies() {
		b.Run("call=setup+execute/nodes=12/policy="+policy.Name(), func(b *testing.B) { executeChain(b, policy.Name()) })
	}
	b.Run("call=launch/kernel=empty", func(b *testing.B) {
		launch(b, &device.Program{Name: "empty", Run: func(*device.Args, int) error { return nil }}, make([]byte, 128), 0)
	})
	b.Run("call=launch/kernel=add", func(b *testing.B) {
		p := prepare(b, "kernel-follow", 1)
		n := &p.op.Graph().Nodes[0]
		tiling := device.BytesOf(make([]uint64, (n.TilingSize+7)/8))[:n.TilingSize]
		_, err := n.Kernel.Tile(&n.Problem, tiling)
		require.NoError(b, err)
		launch(b, n.Kernel.Program(), tiling, n.Scratch)
	})
}

func executeChain(b *testing.B, policy string) {
	const nodes = 12
	executeAll(b, prepare(b, policy, nodes), nodes)
}

// executeAll sets up and executes an operation of so many kernels again and
// again.
func executeAll(b *testing.B, p *prepared, nodes int) {
	b.ReportAllocs()
	h := host{sync: func() { require.NoError(b, p.c.Synchronize(b.Context())) }}
	for b.Loop() {
		h.begin()
		if _, err := p.op.Setup(p.pack, p.c); err != nil {
			b.Fatal(err)
		}
		if err := p.op.Execute(p.pack, p.ws, p.c); err != nil {
			b.Fatal(err)
		}
		h.enqueued(nodes)
	}
	h.report(b)
}

// host measures the time that the host spends on kernels. Every now and then it
// waits for the device, which does not count.
type host struct {
	sync    func()
	start   time.Time
	running bool
	spent   time.Duration
	queued  int
	kernels int
}

func (h *host) begin() {
	if !h.running {
		h.start, h.running = time.Now(), true
	}
}

func (h *host) enqueued(n int) {
	h.kernels += n
	if h.queued += n; h.queued >= round {
		h.wait()
	}
}

func (h *host) wait() {
	if h.running {
		h.spent += time.Since(h.start)
	}
	h.sync()
	h.queued, h.running = 0, false
}

func (h *host) report(b *testing.B) {
	h.wait()
	b.ReportMetric(float64(h.spent.Nanoseconds())/float64(h.kernels), "host-ns/kernel")
}

// launch launches a kernel straight on the device. An empty kernel is done
// sooner or later than the host is with the next launch; one that does what the
// chain's kernels do keeps the stream as close to the host as they do.
func launch(b *testing.B, program *device.Program, tiling []byte, scratch int64) {
	dev, err := cpu.New()
	require.NoError(b, err)
	defer dev.Close()
	s, err := dev.NewStream()
	require.NoError(b, err)
	mem, err := dev.Alloc(256 + scratch)
	require.NoError(b, err)
	l := device.Launch{
		Program: program, Blocks: 1, Inputs: operands - 1, Inline: tiling,
		Scratch: mem.At(256, scratch),
		Buffers: []device.Buffer{mem.At(0, 32), mem.At(64, 32), mem.At(128, 32)},
	}
	launchOn(b, s, []device.Launch{l})
}

// launchAll launches a sequence again and again on a device of its own.
func launchAll(b *testing.B, ls []device.Launch) {
	dev, err := cpu.New()
	require.NoError(b, err)
	defer dev.Close()
	s, err := dev.NewStream()
	require.NoError(b, err)
	launchOn(b, s, ls)
}

func launchOn(b *testing.B, s device.Stream, ls []device.Launch) {
	b.ReportAllocs()
	h := host{sync: func() { require.NoError(b, s.Synchronize(b.Context())) }}
	for b.Loop() {
		h.begin()
		for i := range ls {
			if err := s.Launch(&ls[i]); err != nil {
				b.Fatal(err)
			}
		}
		h.enqueued(len(ls))
	}
	h.report(b)
}
