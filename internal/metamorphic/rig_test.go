package metamorphic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/mempool"
	"goatb/operation"
	"goatb/tensor"
	"goatb/tiling/sink"
)

const (
	guard     = 64
	guardByte = 0xa5
	arenaSize = 8 << 20
)

var policies = []string{"kernel-follow", "overall", "multi-stream", "device-sink"}

// rig is a device with a context for each setting.
type rig struct {
	dev      device.Device
	contexts []*atbctx.Context
	names    []string
	policies []string
	events   []device.Event
	// tensors and workspace hold the memory of a run; runs counts them and
	// moves the tensors about.
	tensors, workspace device.Buffer
	runs               int64
	// counts says that Execute may wait for the launch itself: nothing holds it.
	counts bool
	// size is that of the workspace of the last Setup.
	size int64
	// before and after are called around the enqueuing of a launch, wrap when a
	// context was switched to a policy, fresh before a graph.
	before, after func(op *operation.Op, ws device.Buffer)
	wrap          func(c *atbctx.Context)
	fresh         func()
}

// newRig makes contexts with the tiling caches and setup reuse on and off, for
// every solver, with one plan for the tree or one for each operation; the forms of
// device-sink take turns.
func newRig(t *testing.T, dev device.Device, solvers int) *rig {
	t.Helper()
	r := &rig{dev: dev, policies: policies}
	ring := func(alloc func(int64) (device.Buffer, error)) func(int64) (device.Buffer, error) {
		var mem device.Buffer // one for all contexts, which run one after the other
		return func(n int64) (device.Buffer, error) {
			var err error
			if mem.IsNil() {
				mem, err = alloc(n)
			}
			return mem, err
		}
	}
	keep := func(device.Buffer) error { return nil }
	host, device := ring(dev.AllocHost), ring(dev.Alloc)
	for solver := range solvers {
		for _, caches := range []bool{true, false} {
			levels, global := 0, fmt.Sprint((solver+1)%2)
			if caches {
				levels, global = 3, "1"
			}
			form := sink.Forms()[len(r.contexts)%len(sink.Forms())].String()
			c, err := atbctx.New(dev, atbctx.WithEnv(func(string) (string, bool) { return "", false }), atbctx.WithStreams(2),
				atbctx.WithSolver(mempool.SolverType(solver)), atbctx.WithTilingCaches(levels), atbctx.WithSetupReuse(caches),
				atbctx.WithSinkForm(form), atbctx.WithVariable("ATB_WORKSPACE_MEM_ALLOC_GLOBAL", global),
				atbctx.WithHostTilingAllocator(host, keep), atbctx.WithTilingAllocator(device, keep))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			r.contexts = append(r.contexts, c)
			r.names = append(r.names, fmt.Sprintf("solver %s, caches %v, global plan %s, form %s", mempool.SolverType(solver), caches, global, form))
		}
	}
	for range 3 {
		e, err := dev.NewEvent()
		require.NoError(t, err)
		r.events = append(r.events, e)
	}
	var err error
	r.tensors, err = dev.Alloc(arenaSize)
	require.NoError(t, err)
	r.workspace, err = dev.Alloc(arenaSize)
	require.NoError(t, err)
	return r
}

// hold holds a stream of each context until a launch is enqueued as a whole, so
// that what does not wait for it runs first.
func (r *rig) hold(t *testing.T, stream int) {
	gate, err := r.dev.NewEvent()
	require.NoError(t, err)
	opener, err := r.dev.NewStream()
	require.NoError(t, err)
	r.wrap = func(c *atbctx.Context) {
		s, err := c.Stream(stream)
		require.NoError(t, err)
		if f, ok := s.(*faulty); ok {
			s = f.Stream
		}
		r.before = func(*operation.Op, device.Buffer) {
			if !r.counts {
				require.NoError(t, s.Wait(gate))
			}
		}
		r.after = func(*operation.Op, device.Buffer) {
			if r.counts {
				return
			}
			require.NoError(t, opener.Record(gate))
			require.NoError(t, opener.Synchronize(context.Background()))
			require.NoError(t, opener.Reset(gate))
		}
	}
}

// free lets all streams run.
func (r *rig) free() { r.wrap, r.before, r.after = nil, nil, nil }

// openCPU opens the device in one of its modes; wrap may put a layer around it.
func openCPU(t *testing.T, opts ...cpu.Option) device.Device {
	t.Helper()
	d, err := cpu.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// telling reports whether the reference says something: no tensor of floats
// holds NaN or infinity, and none is all zero.
func telling(out [][]byte, descs []tensor.Desc) bool {
	for i, d := range descs {
		if !d.DType.IsFloat() {
			continue
		}
		x := make([]float32, d.Numel())
		kernel.LoadFloats(x, out[i], d.DType)
		zero := true
		for _, v := range x {
			if v-v != 0 {
				return false
			}
			zero = zero && v == 0
		}
		if zero {
			return false
		}
	}
	return true
}

// place cuts the next n bytes, between guards, from an arena that is used from
// `at` on.
func place(arena device.Buffer, at *int64, n int64) device.Buffer {
	*at += guard
	b := arena.At(*at, n)
	*at = (*at + n + guard + guard - 1) / guard * guard
	return b
}

// errDiffers is what the test looks for: other bits than the reference has, or
// bytes written outside of a tensor.
var errDiffers = errors.New("differs")

// run executes a graph on one of the trial's sets of data, after a Setup or on
// that of the last run, and compares what it leaves behind.
func (r *rig) run(c *atbctx.Context, g *operation.Op, x *trial, set int, setup bool) error {
	d, want := x.data[set], x.want[set]
	at := r.runs % 7 * 4096
	r.runs++
	low := at
	var pack operation.VariantPack
	for _, desc := range d.descs {
		pack.In = append(pack.In, device.Tensor{Desc: desc, Data: place(r.tensors, &at, desc.Bytes())})
	}
	outs, err := g.InferShape(d.descs)
	if err != nil {
		return err
	}
	for _, desc := range outs {
		pack.Out = append(pack.Out, device.Tensor{Desc: desc, Data: place(r.tensors, &at, desc.Bytes())})
	}
	whole := r.tensors.At(low, at-low)
	fill(whole, guardByte)
	for i := range pack.In {
		copy(pack.In[i].Data.Bytes(), d.bytes[i])
		if d.host[i] {
			pack.In[i].Host = bytes.Clone(d.bytes[i])
		}
	}
	for i := range pack.Out {
		fill(pack.Out[i].Data, 0xff)
	}
	ws, err := r.execute(c, g, pack, setup, x.again)
	if err != nil {
		return err
	}
	for i, x := range slices.Concat(pack.Out, pack.In) {
		if got := x.Data.Bytes(); !bytes.Equal(got, want[i]) {
			return fmt.Errorf("tensor %d of %d outputs and %d inputs %w, n %d", i, len(pack.Out), len(pack.In), errDiffers, d.n)
		}
		fill(x.Data, guardByte)
	}
	for name, m := range map[string]device.Buffer{"a tensor": whole, "the workspace": ws} {
		if i := slices.IndexFunc(m.Bytes(), func(b byte) bool { return b != guardByte }); i >= 0 {
			return fmt.Errorf("memory around %s %w at byte %d", name, errDiffers, i)
		}
	}
	return nil
}

// execute runs a graph and returns its workspace with guards around it, the
// inside wiped.
func (r *rig) execute(c *atbctx.Context, g *operation.Op, pack operation.VariantPack, setup, twice bool) (device.Buffer, error) {
	if setup {
		var err error
		if r.size, err = g.Setup(pack, c); err != nil {
			return device.Buffer{}, err
		}
	}
	end := r.runs % 3 * 512
	low := end
	ws := place(r.workspace, &end, r.size)
	whole := r.workspace.At(low, end-low)
	fill(whole, guardByte)
	fill(ws, 0xff)
	if r.before != nil {
		r.before(g, ws)
	}
	times := 1
	if twice {
		times = 2 // one right behind the other, in the same memory
	}
	var err error
	for range times {
		err = errors.Join(err, g.Execute(pack, ws, c))
	}
	if r.after != nil {
		r.after(g, ws)
	}
	if err = errors.Join(err, c.Synchronize(context.Background())); err != nil {
		return whole, err
	}
	fill(ws, guardByte)
	return whole, nil
}

func fill(m device.Buffer, v byte) {
	b := m.Bytes()
	for i := range b {
		b[i] = v
	}
}
