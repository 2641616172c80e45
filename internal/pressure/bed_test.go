package pressure

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/tensor"
)

var policies = []string{"kernel-follow", "overall", "multi-stream"}

func noEnv(string) (string, bool) { return "", false }

func newDevice(t testing.TB, opts ...cpu.Option) device.Device {
	t.Helper()
	d, err := cpu.New(append([]cpu.Option{cpu.WithWorkers(2)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func newContext(t testing.TB, d device.Device, opts ...atb.Option) *atb.Context {
	t.Helper()
	c, err := atb.NewContext(d, append([]atb.Option{atb.WithEnv(noEnv)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// plus is y = x + the host values: every launch has a tiling of its own.
type plus struct{}

type plusTiling struct{ n, sum int64 }

var plusKernel = kernel.Table{kernel.Define(kernel.Def[plus, plusTiling]{
	Name: "pressure/plus",
	Tile: func(p *kernel.Problem, _ plus, t *plusTiling, _ []int64) (kernel.Grid, error) {
		t.n = p.In[0].Numel()
		for _, v := range p.Values[0] {
			t.sum += v
		}
		return kernel.Grid{Blocks: 1}, nil
	},
	Run: func(a *kernel.Args, _ int, t *plusTiling, _ []int64) error {
		x, y := device.View[float32](a.Mem(0)), device.View[float32](a.Mem(1))
		for i := range t.n {
			y[i] = x[i] + float32(t.sum)
		}
		return nil
	},
})}

func (plus) Signature() operation.Signature {
	return operation.Signature{Name: "PlusOperation", In: operation.Ports("x", "n!"), Out: operation.Ports("y"), Variant: "Plus", Native: "f32,int32->f32"}
}

func (plus) Validate() error                                 { return nil }
func (plus) Check(*operation.Query) error                    { return nil }
func (plus) Infer(q *operation.Query) ([]tensor.Desc, error) { return q.In[:1:1], nil }
func (plus) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	return b.Kernel(kernelgraph.Call{Table: plusKernel, In: []kernelgraph.Ref{b.In(0)}, Val: []kernelgraph.Ref{b.In(1)}, Out: []kernelgraph.Ref{b.Out(0)}, Params: plus{}})
}

// sums is a run of launches: each adds other host values to x and has an output
// of its own, on a line of its own.
type sums struct {
	testing.TB
	c      *atb.Context
	op     *atb.Op
	pack   atb.VariantPack
	values []int32
	out    atb.Buffer
}

const stride = 64

func newSums(t testing.TB, c *atb.Context, launches int) *sums {
	t.Helper()
	op, err := atb.New(plus{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, op.Close()) })
	x, err := atb.FromSlice(c, []float32{0.5}, 1)
	require.NoError(t, err)
	out, err := c.Alloc(stride * int64(launches))
	require.NoError(t, err)
	s := &sums{TB: t, c: c, op: op, values: make([]int32, 2), out: out}
	s.pack = atb.VariantPack{In: []atb.Tensor{x, atb.Host(s.values)}, Out: []atb.Tensor{{Desc: x.Desc}}}
	return s
}

// at gives the host values of launch i.
func at(i int) (a, b int32) { return int32(i % 97), int32(i / 97) }

func (s *sums) launch(i int) {
	s.values[0], s.values[1] = at(i)
	s.pack.Out[0].Data = s.out.At(stride*int64(i), 4)
	size, err := s.op.Setup(s.pack, s.c)
	assert.NoError(s, err)
	assert.Zero(s, size)
	assert.NoError(s, s.op.Execute(s.pack, atb.Buffer{}, s.c))
}

// check waits and looks at every output.
func (s *sums) check(launches int) {
	assert.NoError(s, s.c.Synchronize(s.Context()))
	got := device.View[float32](s.out.Bytes())
	for i := range launches {
		a, b := at(i)
		if want := 0.5 + float32(a) + float32(b); got[i*stride/4] != want {
			assert.Equal(s, want, got[i*stride/4], "launch %d", i)
			return
		}
	}
}

// gate is a kernel that stands still until it is told to go on.
type gate struct {
	program *device.Program
	open    chan struct{}
	// held carries, for each hold, the waits that there were before it.
	held chan int64
}

func newGate() *gate {
	g := &gate{open: make(chan struct{}), held: make(chan int64)}
	g.program = &device.Program{Name: "pressure/gate", Run: func(*device.Args, int) error {
		<-g.open
		return nil
	}}
	return g
}

// hold stops the context's stream, which has nothing to do.
func (g *gate) hold(t testing.TB, c *atb.Context) {
	assert.NoError(t, c.Synchronize(t.Context()))
	before := waits(c.Stats())
	s, err := c.Stream(0)
	assert.NoError(t, err)
	assert.NoError(t, s.Launch(&device.Launch{Program: g.program, Blocks: 1}))
	g.held <- before
}

// release lets the stream go on, after each hold, once the host is seen to wait.
func (g *gate) release(c *atb.Context) {
	for before := range g.held {
		for waits(c.Stats()) == before {
			runtime.Gosched()
		}
		g.open <- struct{}{}
	}
}

// waits counts the times that the host waited for a tiling block or for room in
// the queue.
func waits(s atb.Stats) int64 {
	return s.HostRing.Stalls + s.DeviceRing.Stalls + s.Streams[0].QueueStalls
}
