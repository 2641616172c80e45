package operation_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/status"
)

var policies = []string{"kernel-follow", "overall", "multi-stream"}

// eachWay runs f under every policy with every selection of cache levels.
func eachWay(t *testing.T, f func(b *bed)) {
	for _, policy := range policies {
		for levels := range 4 {
			t.Run(fmt.Sprintf("policy=%s/caches=%d", policy, levels), func(t *testing.T) {
				f(newBed(t, atbctx.WithPolicy(policy), atbctx.WithTilingCaches(levels)))
			})
		}
	}
}

// shifted is a graph with temporaries over a shift: 2x + n, times 10.
func (b *bed) shifted() *operation.Op {
	return b.graph(operation.GraphParam{Name: "Shifted", Inputs: 2, Outputs: 1, Internals: 2, Nodes: []operation.Node{
		{Op: newOp(b, muls(2)), In: []int{0}, Out: []int{3}},
		{Op: newOp(b, shift{}), In: []int{3, 1}, Out: []int{4}},
		{Op: newOp(b, muls(10)), In: []int{4}, Out: []int{2}},
	}})
}

// After one Setup an operation is executed again and again with other data,
// other addresses, other host values and other workspaces.
func TestExecuteAgain(t *testing.T) {
	eachWay(t, func(b *bed) {
		g := b.shifted()
		first := b.pack(g, b.f32([]float32{0}), host(0, 0))
		ws := b.setup(g, first)
		for i := range 20 {
			p := b.pack(g, b.f32([]float32{float32(i)}), host(int32(i%7), int32(i%3)))
			if i%4 == 1 {
				p = first // what was set up, whose data have changed
				copy(device.View[float32](p.In[0].Data.Bytes()), []float32{float32(i)})
				copy(device.View[int32](p.In[1].Host), []int32{int32(i % 7), int32(i % 3)})
			}
			if i%3 == 2 {
				old := ws
				ws = b.setup(g, p)
				for j := range old.Bytes() {
					old.Bytes()[j] = 0xff
				}
			}
			b.execute(g, p, ws)
			assert.Equal(b, []float32{10 * (2*float32(i) + float32(i%7) + float32(i%3))}, b.values(p.Out[0]), "round %d", i)
		}
	})
}

// An Execute without tensors stands for Setup's.
func TestExecuteWithSetupsTensors(t *testing.T) {
	b := newBed(t)
	g := b.shifted()
	p := b.pack(g, b.f32([]float32{1}), host(1, 2))
	ws := b.setup(g, p)
	require.NoError(t, g.Execute(operation.VariantPack{}, ws, b.c))
	assert.Equal(t, []float32{50}, b.values(p.Out[0]))
}

// Three steps with other data are enqueued while the stream is held: each has
// its own result.
func TestStepsInFlight(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, atbctx.WithPolicy(policy))
				e, opener := b.event(), b.context()
				g, w, r := b.shifted(), b.op(wait(e)), b.op(record(e))
				require.NoError(t, b.fire(w, b.c))
				var outs []device.Tensor
				lengths := []int32{0, 0}
				for i := range 3 {
					copy(lengths, []int32{int32(i), 5})
					p := b.pack2(g, []float32{float32(i)}, host(lengths...))
					b.execute(g, p, b.setup(g, p))
					outs = append(outs, p.Out[0])
				}
				copy(lengths, []int32{99, 99})
				require.NoError(t, b.fire(r, opener))
				require.NoError(t, b.c.Synchronize(t.Context()))
				for i, out := range outs {
					want := 10 * (2*float32(i) + float32(i) + 5)
					assert.Equal(t, want, device.View[float32](out.Data.Bytes())[0])
				}
			})
		})
	}
}

// pack2 makes the tensors of a call without waiting for a stream.
func (b *bed) pack2(o *operation.Op, x []float32, n device.Tensor) operation.VariantPack {
	b.Helper()
	in, err := atbctx.Wrap(append([]float32(nil), x...), int64(len(x)))
	require.NoError(b, err)
	return b.pack(o, in, n)
}

// The policy may change between any two steps.
func TestPolicyChanges(t *testing.T) {
	b := newBed(t)
	g := b.shifted()
	for i := range 12 {
		require.NoError(t, b.c.SetPolicy(policies[i*i%3]))
		p := b.pack(g, b.f32([]float32{float32(i)}), host(int32(i%2), 1))
		b.execute(g, p, b.setup(g, p))
		assert.Equal(t, []float32{10 * (2*float32(i) + float32(i%2) + 1)}, b.values(p.Out[0]), "round %d", i)
	}
	assert.Equal(t, int64(11), b.c.Stats().SetupHits, "a plan knows nothing of policies")
}

func TestHalves(t *testing.T) {
	eachWay(t, func(b *bed) {
		g := b.shifted()
		for i := range 5 {
			p := b.pack(g, b.f32([]float32{float32(i)}), host(int32(i), 1))
			ws := b.setup(g, p)
			require.NoError(b, g.PreLaunch(p, ws, b.c))
			require.NoError(b, g.Launch(b.c))
			assert.Equal(b, []float32{10 * (3*float32(i) + 1)}, b.values(p.Out[0]))
			assert.ErrorIs(b, g.Launch(b.c), status.ErrInvalidParam, "launched already")
		}
	})
}

// What may happen between the halves of a launch.
func TestBetweenHalves(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithPolicy(policy), atbctx.WithStreams(2))
			g := b.shifted()
			p := b.pack(g, b.f32([]float32{1}), host(1, 2))
			ws := b.setup(g, p)
			prepare := func() { require.NoError(t, g.PreLaunch(p, ws, b.c)) }
			clearOut := func() { clear(p.Out[0].Data.Bytes()) }

			for _, other := range policies {
				prepare()
				require.NoError(t, b.c.SetPolicy(other))
				require.NoError(t, g.Launch(b.c), "the second half follows the first")
				assert.Equal(t, []float32{50}, b.values(p.Out[0]))
				clearOut()
				prepare()
				require.NoError(t, b.c.SetPolicy(policy))
				prepare()
				require.NoError(t, g.Launch(b.c), "another first half takes the place of the one before")
				assert.Equal(t, []float32{50}, b.values(p.Out[0]))
			}
			prepare()
			b.setup(g, p)
			require.NoError(t, g.Launch(b.c), "a Setup that changes nothing")
			assert.Equal(t, []float32{50}, b.values(p.Out[0]))

			prepare()
			s, err := b.c.Stream(0)
			require.NoError(t, err)
			require.NoError(t, b.c.SetStreams(s))
			require.ErrorIs(t, g.Launch(b.c), status.ErrInvalidParam, "other streams")
			ws = b.setup(g, p)
			prepare()
			require.NoError(t, g.SetStream(3))
			require.ErrorIs(t, g.Launch(b.c), status.ErrInvalidParam, "another stream id")
			require.NoError(t, g.SetStream(0))
			ws = b.setup(g, p)
			b.execute(g, p, ws)
			b.sync()
			assert.Zero(t, b.c.Stats().HostRing.InUse, "no block was lost")
			assert.Zero(t, b.c.Stats().DeviceRing.InUse)

			prepare()
			require.NoError(t, g.Close())
			assert.Zero(t, b.c.Stats().HostRing.InUse)
			assert.Zero(t, b.c.Stats().DeviceRing.InUse)
		})
	}
}

// More prepared launches than blocks: the policy with rings says so, nothing
// hangs, and what was prepared can be launched.
func TestTooManyPreparedLaunches(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithPolicy(policy))
			x := b.f32([]float32{1})
			var ops []*operation.Op
			var packs []operation.VariantPack
			var failed error
			for range 40 {
				o := b.op(muls(2))
				p := b.pack(o, x)
				ws := b.setup(o, p)
				if failed = o.PreLaunch(p, ws, b.c); failed != nil {
					break
				}
				ops, packs = append(ops, o), append(packs, p)
			}
			if policy == "kernel-follow" {
				require.NoError(t, failed)
			} else {
				require.ErrorIs(t, failed, status.ErrOutOfDeviceMemory)
				assert.Len(t, ops, 32)
			}
			for i, o := range ops {
				require.NoError(t, o.Launch(b.c))
				assert.Equal(t, []float32{2}, b.values(packs[i].Out[0]))
			}
		})
	}
}

// A launch that was prepared long ago keeps its block; the others go round it.
func TestPreparedLaunchIsPassedOver(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atbctx.WithPolicy(policy))
		x := b.f32([]float32{3})
		early, o := b.op(muls(2)), b.op(muls(5))
		first := b.pack(early, x)
		require.NoError(t, early.PreLaunch(first, b.setup(early, first), b.c))
		p := b.pack(o, x)
		ws := b.setup(o, p)
		for range 300 {
			b.execute(o, p, ws)
		}
		require.NoError(t, early.Launch(b.c))
		assert.Equal(t, []float32{6}, b.values(first.Out[0]), policy)
		assert.Equal(t, []float32{15}, b.values(p.Out[0]), policy)
	}
}

// A tiling that panics leaves no block behind.
func TestTilingPanics(t *testing.T) {
	for _, policy := range policies {
		b := newBed(t, atbctx.WithPolicy(policy))
		panics := true
		table := kernel.Table{kernel.Define(kernel.Def[struct{}, struct{ N int64 }]{
			Name: "test/panics",
			Tile: func(*kernel.Problem, struct{}, *struct{ N int64 }, []int64) (kernel.Grid, error) {
				if panics {
					panic("oh")
				}
				return kernel.Grid{Blocks: 1}, nil
			},
			Run: func(*kernel.Args, int, *struct{ N int64 }, []int64) error { return nil },
		})}
		o := b.op(custom{lower: func(g *kernelgraph.Builder) error {
			return g.Kernel(kernelgraph.Call{Table: table, Params: struct{}{}, Out: []kernelgraph.Ref{g.Out(0)}})
		}})
		p := b.pack(o, b.f32([]float32{1}))
		ws := b.setup(o, p)
		for range 200 {
			require.Panics(t, func() { _ = o.Execute(p, ws, b.c) })
		}
		panics = false
		b.execute(o, p, ws)
		b.sync()
		assert.Zero(t, b.c.Stats().DeviceRing.InUse, policy)
	}
}

// One goroutine sets up and prepares, another launches what was prepared.
func TestTwoGoroutines(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithPolicy(policy))
			type step struct {
				o *operation.Op
				p operation.VariantPack
			}
			ready, free := make(chan step), make(chan *operation.Op, 4)
			for range cap(free) {
				free <- b.shifted()
			}
			const steps = 200
			go func() {
				defer close(ready)
				for i := range steps {
					o := <-free
					p := b.pack2(o, []float32{float32(i)}, host(int32(i%9), 1))
					n, err := o.Setup(p, b.c)
					if !assert.NoError(t, err) {
						return
					}
					ws, err := b.c.Alloc(n)
					assert.NoError(t, err)
					if !assert.NoError(t, o.PreLaunch(p, ws, b.c)) {
						return
					}
					ready <- step{o, p}
				}
			}()
			var outs []device.Tensor
			for s := range ready {
				require.NoError(t, s.o.Launch(b.c))
				outs = append(outs, s.p.Out[0])
				free <- s.o
			}
			b.sync()
			require.Len(t, outs, steps)
			for i, out := range outs {
				assert.Equal(t, 10*(2*float32(i)+float32(i%9)+1), device.View[float32](out.Data.Bytes())[0])
			}
		})
	}
}

// Calls that overlap on one operation or one context are refused or right, never
// wrong.
func TestOverlappingCalls(t *testing.T) {
	b := newBed(t)
	o := b.op(muls(2))
	x := b.f32([]float32{1, 2})
	p := b.pack(o, x)
	ws := b.setup(o, p)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if _, err := o.Setup(p, b.c); err != nil {
					assert.ErrorIs(t, err, status.ErrInvalidParam)
					assert.ErrorContains(t, err, "another goroutine")
				}
				if err := o.Execute(p, ws, b.c); err != nil {
					assert.ErrorIs(t, err, status.ErrInvalidParam)
				}
			}
		})
	}
	wg.Wait()
	b.setup(o, p)
	b.execute(o, p, ws)
	assert.Equal(t, []float32{2, 4}, b.values(p.Out[0]))
}

// A node cannot be used while its graph is.
func TestNodeWhileItsGraphIsInUse(t *testing.T) {
	b := newBed(t)
	node := newOp(t, muls(2))
	var inside error
	cond := func() (bool, error) { inside = node.Update(muls(3)); return true, nil }
	g := b.graph(operation.GraphParam{Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
		{Op: node, In: []int{0}, Out: []int{2}},
		{Op: newOp(t, &operation.If{Cond: cond, Then: b.op(muls(1)), Else: b.op(muls(1))}), In: []int{2}, Out: []int{1}},
	}})
	assert.Equal(t, []float32{2}, b.run(g, b.f32([]float32{1})))
	assert.ErrorIs(t, inside, status.ErrInvalidParam)
	require.NoError(t, node.Update(muls(3)))
}

// Contexts, operations and the device may be closed in any order.
func TestCloseInAnyOrder(t *testing.T) {
	for i, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		for _, policy := range policies {
			b := newBed(t, atbctx.WithPolicy(policy))
			o, err := operation.New(muls(2))
			require.NoError(t, err)
			p := b.pack(o, b.f32([]float32{1}))
			ws := b.setup(o, p)
			b.execute(o, p, ws)
			if i%2 == 0 {
				require.NoError(t, o.PreLaunch(p, ws, b.c))
			}
			for range 2 {
				for _, k := range order {
					require.NoError(t, []func() error{o.Close, b.c.Close, b.dev.Close}[k]())
				}
			}
			assert.ErrorIs(t, o.Execute(p, ws, b.c), status.ErrInvalidOperationAddr)
		}
	}
}

// An operation moves from context to context with its Setup.
func TestContextsTakeTurns(t *testing.T) {
	b := newBed(t)
	contexts := []*atbctx.Context{b.c, b.context(atbctx.WithPolicy("overall")), b.context(atbctx.WithPolicy("multi-stream"))}
	g := b.shifted()
	for i := range 9 {
		b.c = contexts[i%3]
		p := b.pack(g, b.f32([]float32{float32(i)}), host(1, 1))
		b.execute(g, p, b.setup(g, p))
		assert.Equal(t, []float32{10 * (2*float32(i) + 2)}, b.values(p.Out[0]))
	}
}

// A thousand Setups of valid varying lengths: none fails, and one that fails
// leaves the operation usable.
func TestThousandSetups(t *testing.T) {
	b := newBed(t)
	g := b.shifted()
	for i := range 1000 {
		n := i%64 + 1
		lengths := make([]int32, n)
		lengths[n-1] = int32(i % 100)
		p := b.pack2(g, make([]float32, n), host(lengths...))
		ws := b.setup(g, p)
		if i%50 == 0 {
			lengths[0] = 101
			_, err := g.Setup(p, b.c)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			require.ErrorIs(t, g.Execute(p, ws, b.c), status.ErrInvalidParam)
			lengths[0] = 0
			ws = b.setup(g, p)
			b.execute(g, p, ws)
			b.sync()
		}
	}
}

// Values that a failed Setup read are checked again by the next one.
func TestValuesAfterAFailedSetup(t *testing.T) {
	b := newBed(t)
	o := b.op(shift{})
	p := b.pack(o, b.f32([]float32{1, 2}), host(1, 2))
	b.setup(o, p)
	bad := p
	bad.In = []device.Tensor{b.f32([]float32{1, 2, 3}), host(1, 101)}
	bad.Out = []device.Tensor{b.empty(bad.In[0].Desc)}
	for range 2 {
		_, err := o.Setup(bad, b.c)
		require.ErrorIs(t, err, status.ErrInvalidParam)
	}
	p.In[1] = bad.In[1]
	for range 2 {
		_, err := o.Setup(p, b.c)
		require.ErrorIs(t, err, status.ErrInvalidParam, "the same bad values with the descriptors of before")
	}
	p.In[1] = host(1, 3)
	b.execute(o, p, b.setup(o, p))
	assert.Equal(t, []float32{5, 6}, b.values(p.Out[0]))
}

// The switches for finding faults change no result.
func TestSwitches(t *testing.T) {
	for _, v := range []string{"ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE", "ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE", "ATB_STREAM_SYNC_EVERY_OPERATION_ENABLE", "ATB_COMPARE_TILING_EVERY_KERNEL"} {
		for _, policy := range policies {
			b := newBed(t, atbctx.WithVariable(v, "1"), atbctx.WithPolicy(policy))
			g := b.shifted()
			assert.Equal(t, []float32{50}, b.run(g, b.f32([]float32{1}), host(1, 2)), "%s %s", v, policy)
		}
	}
}
