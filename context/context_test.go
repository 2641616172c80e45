package context_test

import (
	stdctx "context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/mempool"
	"goatb/status"
	"goatb/tensor"
	"goatb/tilingcache"
)

func openDevice(t testing.TB, opts ...cpu.Option) *cpu.Device {
	t.Helper()
	d, err := cpu.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// open makes a context that reads nothing of the process's environment.
func open(t testing.TB, opts ...atbctx.Option) *atbctx.Context {
	t.Helper()
	c, err := atbctx.New(openDevice(t), append([]atbctx.Option{atbctx.WithEnv(env())}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestNewRefuses(t *testing.T) {
	alloc := func(int64) (device.Buffer, error) { return device.Buffer{}, nil }
	free := func(device.Buffer) error { return nil }
	d := openDevice(t)
	for _, tt := range []struct {
		name, want string
		opt        atbctx.Option
	}{
		{"streams 0", "1 to 1024 streams, got 0", atbctx.WithStreams(0)},
		{"streams -1", "got -1", atbctx.WithStreams(-1)},
		{"streams", "got 1025", atbctx.WithStreams(1025)},
		{"checks", `"310p"`, atbctx.WithChecks("310p")},
		{"filter", "[", atbctx.WithKernelFilter("matmul/[")},
		{"cores", "at least one core", atbctx.WithMachine(kernel.Machine{})},
		{"caches", "negative", atbctx.WithMachine(kernel.Machine{Cores: 1, L2: -1})},
		{"only alloc", "both functions or none", atbctx.WithTilingAllocator(alloc, nil)},
		{"only free", "both functions or none", atbctx.WithTilingAllocator(nil, free)},
		{"only host alloc", "both functions or none", atbctx.WithHostTilingAllocator(alloc, nil)},
		{"policy", "ATB_TILING_POLICY", atbctx.WithPolicy("sometimes")},
		{"caches", "ATB_OPSRUNNER_KERNEL_CACHE_TYPE", atbctx.WithTilingCaches(4)},
		{"solver", "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", atbctx.WithSolver(5)},
		{"variable", "ATB_RUNNER_POOL_SIZE", atbctx.WithVariable("ATB_RUNNER_POOL_SIZE", "many")},
		{"unknown variable", "unknown variable ATB_COFFEE", atbctx.WithVariable("ATB_COFFEE", "1")},
		{"config", "LCAL_COMM_ID", atbctx.WithConfig(atbctx.Config{})},
		{"environment", "ATB_RUNNER_POOL_SIZE", atbctx.WithEnv(env("ATB_RUNNER_POOL_SIZE", "-1"))},
		{"no lookup", "nil", atbctx.WithEnv(nil)},
		{"no logger", "nil", atbctx.WithLogger(nil)},
		{"no memory from the allocator", "live memory", atbctx.WithTilingAllocator(alloc, free)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := atbctx.New(d, atbctx.WithEnv(env()), tt.opt)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, tt.want)
		})
	}
	t.Run("everything at once", func(t *testing.T) {
		_, err := atbctx.New(d, atbctx.WithEnv(env("ATB_RUNNER_POOL_SIZE", "x")), atbctx.WithStreams(0), atbctx.WithChecks(""), atbctx.WithSolver(7), atbctx.WithTilingAllocator(alloc, nil))
		for _, want := range []string{"ATB_RUNNER_POOL_SIZE", "streams", "checks", "ALG_TYPE", "allocator"} {
			assert.ErrorContains(t, err, want)
		}
	})
	for name, none := range map[string]device.Device{"nil": nil, "typed nil": (*cpu.Device)(nil)} {
		_, err := atbctx.New(none)
		assert.ErrorIs(t, err, status.ErrInvalidParam, name)
	}
	_, err := atbctx.New(d, nil, atbctx.WithEnv(env()), nil)
	assert.NoError(t, err, "nil options do nothing")
}

func TestNewFailsWithoutMemory(t *testing.T) {
	d := openDevice(t, cpu.WithMemoryLimit(1<<20))
	_, err := atbctx.New(d, atbctx.WithEnv(env()))
	require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
	closed, err := cpu.New()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	_, err = atbctx.New(closed, atbctx.WithEnv(env()))
	require.ErrorIs(t, err, status.ErrDeviceFail)
}

func TestOptionsBeatTheEnvironment(t *testing.T) {
	bad := env("ATB_TILING_POLICY", "overall", "ATB_OPSRUNNER_KERNEL_CACHE_TYPE", "1", "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", "1", "ATB_OPSRUNNER_SETUP_CACHE_ENABLE", "0",
		"ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT", "9")
	multi := atbctx.DefaultConfig()
	multi.Policy, multi.RunnerPool = "multi-stream", 3
	for _, tt := range []struct {
		name  string
		opts  []atbctx.Option
		check func(t *testing.T, c atbctx.Config)
	}{
		{"environment alone", nil, func(t *testing.T, c atbctx.Config) {
			assert.Equal(t, "overall", c.Policy)
			assert.Equal(t, 9, c.GlobalSlots)
		}},
		{"policy", []atbctx.Option{atbctx.WithPolicy("multi-stream")}, func(t *testing.T, c atbctx.Config) { assert.Equal(t, "multi-stream", c.Policy) }},
		{"older pair", []atbctx.Option{atbctx.WithVariable("ATB_USE_TILING_COPY_STREAM", "1")}, func(t *testing.T, c atbctx.Config) { assert.Equal(t, "multi-stream", c.Policy) }},
		{"other spelling", []atbctx.Option{atbctx.WithVariable("ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT", "2")}, func(t *testing.T, c atbctx.Config) { assert.Equal(t, 2, c.GlobalSlots) }},
		{"functions", []atbctx.Option{atbctx.WithTilingCaches(2), atbctx.WithSolver(mempool.Intervals), atbctx.WithSetupReuse(true)}, func(t *testing.T, c atbctx.Config) {
			assert.Equal(t, 2, c.CacheType)
			assert.Equal(t, mempool.Intervals, c.Solver)
			assert.True(t, c.SetupReuse)
		}},
		{"configuration", []atbctx.Option{atbctx.WithConfig(multi)}, func(t *testing.T, c atbctx.Config) {
			assert.Equal(t, "multi-stream", c.Policy)
			assert.Equal(t, 3, c.RunnerPool)
			assert.Equal(t, 5, c.GlobalSlots, "the environment does not count any more")
		}},
		{"configuration and options", []atbctx.Option{atbctx.WithPolicy("overall"), atbctx.WithTilingCaches(0), atbctx.WithConfig(multi)}, func(t *testing.T, c atbctx.Config) {
			assert.Equal(t, "overall", c.Policy)
			assert.Equal(t, 0, c.CacheType)
			assert.Equal(t, 3, c.RunnerPool)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, envLast := range []bool{false, true} {
				opts := append([]atbctx.Option{atbctx.WithEnv(bad)}, tt.opts...)
				if envLast {
					opts = append(append([]atbctx.Option{}, tt.opts...), atbctx.WithEnv(bad))
				}
				c, err := atbctx.New(openDevice(t), opts...)
				require.NoError(t, err)
				tt.check(t, c.Config())
				require.NoError(t, c.Close())
			}
		})
	}
	_, err := atbctx.New(openDevice(t), atbctx.WithEnv(env()), atbctx.WithPolicy("overall"), atbctx.WithVariable("ATB_USE_TILING_COPY_STREAM", "1"))
	assert.ErrorIs(t, err, status.ErrInvalidParam, "two options that contradict each other")
}

// A custom allocator's memory is given back once, whoever closes and how often.
func TestTilingAllocators(t *testing.T) {
	type books struct{ allocs, frees atomic.Int64 }
	book := func(d device.Device, b *books) (func(int64) (device.Buffer, error), func(device.Buffer) error) {
		return func(n int64) (device.Buffer, error) {
				b.allocs.Add(1)
				return d.Alloc(n)
			}, func(m device.Buffer) error {
				b.frees.Add(1)
				return d.Free(m)
			}
	}
	d := openDevice(t)
	var host, dev books
	hostAlloc, hostFree := book(d, &host)
	devAlloc, devFree := book(d, &dev)
	c, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithTilingAllocator(devAlloc, devFree), atbctx.WithHostTilingAllocator(hostAlloc, hostFree))
	require.NoError(t, err)
	assert.Equal(t, int64(1), host.allocs.Load())
	assert.Equal(t, int64(1), dev.allocs.Load())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { assert.NoError(t, c.Close()) })
	}
	wg.Wait()
	require.NoError(t, c.Close())
	assert.Equal(t, int64(1), host.frees.Load())
	assert.Equal(t, int64(1), dev.frees.Load())

	t.Run("none", func(t *testing.T) {
		c, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithTilingAllocator(nil, nil))
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
	t.Run("New fails after the first alloc", func(t *testing.T) {
		var b books
		alloc, free := book(d, &b)
		_, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithHostTilingAllocator(alloc, free), atbctx.WithTilingAllocator(
			func(int64) (device.Buffer, error) { return device.Buffer{}, errors.New("no memory today") }, free))
		require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
		assert.ErrorContains(t, err, "no memory today")
		assert.Equal(t, int64(1), b.allocs.Load())
		assert.Equal(t, int64(1), b.frees.Load())
	})
	t.Run("too little memory", func(t *testing.T) {
		var b books
		_, free := book(d, &b)
		_, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithTilingAllocator(func(n int64) (device.Buffer, error) { return d.Alloc(n - 1) }, free))
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.Equal(t, int64(1), b.frees.Load())
	})
	t.Run("misaligned memory", func(t *testing.T) {
		wrap := func(n int64) (device.Buffer, error) {
			mem := device.BytesOf(make([]uint64, n/8+8))
			for !device.Wrap(mem).Aligned(mempool.SlotAlign) {
				mem = mem[8:]
			}
			return device.Wrap(mem[8:]), nil
		}
		_, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithTilingAllocator(wrap, func(device.Buffer) error { return nil }))
		require.ErrorIs(t, err, status.ErrInvalidParam)
	})
}

// Context, device and streams of the caller may be closed in any order.
func TestStreams(t *testing.T) {
	c := open(t, atbctx.WithStreams(2))
	assert.Equal(t, 2, c.Streams())
	first, err := c.Stream(0)
	require.NoError(t, err)
	second, err := c.Stream(1)
	require.NoError(t, err)
	assert.NotSame(t, first, second)
	for _, i := range []int{-1, 2} {
		_, err := c.Stream(i)
		assert.ErrorIs(t, err, status.ErrInvalidStream)
	}
	assert.ErrorIs(t, c.SetStreams(), status.ErrInvalidParam)
	assert.ErrorIs(t, c.SetStreams(first, nil), status.ErrInvalidStream)
	before := c.Epoch()
	mine := []device.Stream{second, first}
	require.NoError(t, c.SetStreams(mine...))
	mine[0] = nil
	got, err := c.Stream(0)
	require.NoError(t, err)
	assert.Same(t, second, got)
	assert.NotEqual(t, before, c.Epoch(), "plans made before are out of date")
}

func TestWorkspaceGrows(t *testing.T) {
	c := open(t, atbctx.WithStreams(2))
	none, err := c.Workspace(0)
	require.NoError(t, err)
	assert.Zero(t, none.Size())
	a, err := c.Workspace(1000)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, a.Size(), int64(1000))
	again, err := c.Workspace(10)
	require.NoError(t, err)
	assert.Equal(t, a, again)
	other, err := c.WorkspaceOn(1, 10)
	require.NoError(t, err)
	assert.False(t, other.Overlaps(a), "each stream has its own")
	b, err := c.Workspace(100_000)
	require.NoError(t, err)
	assert.True(t, b.Live())
	assert.False(t, a.Live(), "the old one was given back")
	assert.Equal(t, b.Size()+other.Size(), c.Stats().WorkspaceBytes)
	_, err = c.WorkspaceOn(2, 10)
	assert.ErrorIs(t, err, status.ErrInvalidStream)
	_, err = c.Workspace(-1)
	assert.ErrorIs(t, err, status.ErrInvalidWorkspaceSize)
}

func TestSides(t *testing.T) {
	const host, launch = atbctx.HostSide, atbctx.LaunchSide
	c := open(t)
	require.NoError(t, c.Enter(host))
	require.NoError(t, c.Enter(launch))
	for _, s := range []atbctx.Side{host, launch, host | launch} {
		assert.ErrorIs(t, c.Enter(s), status.ErrInvalidParam)
	}
	c.Leave(launch)
	require.NoError(t, c.Enter(launch), "a refused Enter claims nothing")
	c.Leave(launch)
	assert.Error(t, c.Enter(host|launch))
	require.NoError(t, c.Enter(launch), "nor in part")

	c.Lend(host | launch)
	require.NoError(t, c.Enter(host|launch), "an operation inside another")
	c.Lend(host)
	require.NoError(t, c.Enter(host), "and one inside that")
	c.Leave(host)
	require.NoError(t, c.Reclaim(host))
	c.Leave(host | launch)
	require.NoError(t, c.Reclaim(host|launch))
	assert.Error(t, c.Enter(host))
	c.Leave(host | launch)
	require.NoError(t, c.Enter(host|launch))
	c.Leave(host | launch)
}

// Close waits for a call in progress; a side that is lent does not hold it up,
// and its owner learns of it.
// hold makes stream 0 of a context wait until the function that it returns is
// called.
func hold(t *testing.T, c *atbctx.Context) (release func()) {
	t.Helper()
	s, err := c.Stream(0)
	require.NoError(t, err)
	e, err := c.Device().NewEvent()
	require.NoError(t, err)
	opener, err := c.Device().NewStream()
	require.NoError(t, err)
	require.NoError(t, s.Wait(e))
	return func() {
		require.NoError(t, opener.Record(e))
		require.NoError(t, opener.Close())
	}
}

// While Close waits for the device, other goroutines can still look at the
// context.
func TestSynchronizeWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := cpu.New()
		require.NoError(t, err)
		c, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithStreams(2))
		require.NoError(t, err)
		release := hold(t, c)
		second, err := c.Stream(1)
		require.NoError(t, err)
		fault := errors.New("fault of stream 1")
		require.NoError(t, second.Launch(&device.Launch{Blocks: 1, Label: &device.Label{Op: "op", Node: "node", Kernel: "k"},
			Program: &device.Program{Run: func(*device.Args, int) error { return fault }}}))
		ctx, cancel := stdctx.WithCancel(t.Context())
		synced := make(chan error)
		go func() { synced <- c.Synchronize(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-synced, stdctx.Canceled)
		release()
		err = c.Synchronize(t.Context())
		require.ErrorIs(t, err, fault, "the error was not lost with the wait")
		assert.ErrorContains(t, err, "op: execute: node (k)")
		require.NoError(t, c.Synchronize(t.Context()), "the context is usable after it")
		require.NoError(t, c.Close())
		require.NoError(t, d.Close())
	})
}

func TestSetPolicy(t *testing.T) {
	c := open(t)
	assert.Equal(t, "kernel-follow", c.Policy())
	assert.Zero(t, c.Stats().Copy)
	for range 2 {
		require.NoError(t, c.SetPolicy("multi-stream"))
		assert.Equal(t, "multi-stream", c.Policy())
		assert.Equal(t, "multi-stream", c.Config().Policy)
		copies := c.Env().Copy
		require.NotNil(t, copies)
		require.NoError(t, c.SetPolicy("overall"))
		require.NoError(t, c.SetPolicy("multi-stream"))
		assert.Same(t, copies, c.Env().Copy, "made once")
	}
	require.ErrorIs(t, c.SetPolicy("none"), status.ErrInvalidParam)
	assert.Equal(t, "multi-stream", c.Policy(), "the old one stays")
}

func TestCopyStreamOnlyWhereNeeded(t *testing.T) {
	for policy, want := range map[string]bool{"kernel-follow": false, "overall": false, "multi-stream": true} {
		c := open(t, atbctx.WithPolicy(policy))
		assert.Equal(t, want, c.Env().Copy != nil, policy)
	}
}

func TestStats(t *testing.T) {
	shared, err := tilingcache.NewGlobal(2)
	require.NoError(t, err)
	c := open(t, atbctx.WithStreams(3), atbctx.WithGlobalCache(shared))
	s := c.Stats()
	assert.Equal(t, int64(480<<20), s.RingBytes)
	assert.Equal(t, 128, s.HostRing.Blocks)
	assert.Equal(t, 32, s.DeviceRing.Blocks)
	assert.Equal(t, int64(3<<20), s.HostRing.BlockSize)
	assert.Len(t, s.Streams, 3)
	assert.NotEqual(t, open(t).ID(), c.ID())
	assert.Same(t, shared, c.Env().Global)
	assert.Nil(t, open(t, atbctx.WithTilingCaches(1), atbctx.WithGlobalCache(shared)).Env().Global, "the level is off")
}

// Rings are reserved, not resident, until they are used.
func TestRingsAreReservedOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	resident := func() int64 {
		b, err := os.ReadFile("/proc/self/statm")
		require.NoError(t, err)
		pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
		require.NoError(t, err)
		return pages * int64(os.Getpagesize())
	}
	d := openDevice(t)
	runtime.GC()
	before := resident()
	c, err := atbctx.New(d, atbctx.WithEnv(env()))
	require.NoError(t, err)
	assert.Equal(t, int64(480<<20), c.Stats().RingBytes)
	assert.Less(t, resident()-before, int64(10<<20))
	require.NoError(t, c.Close())
}

func TestTensors(t *testing.T) {
	c := open(t)
	x, err := atbctx.FromSlice(c, []int32{1, 2, 3, 4, 5, 6}, 2, 3)
	require.NoError(t, err)
	assert.Equal(t, tensor.Of(tensor.Int32, 2, 3), x.Desc)
	back, err := atbctx.ToSlice[int32](t.Context(), c, x)
	require.NoError(t, err)
	assert.Equal(t, []int32{1, 2, 3, 4, 5, 6}, back)
	_, err = atbctx.ToSlice[float32](t.Context(), c, x)
	assert.ErrorIs(t, err, status.ErrInvalidTensorDType)
	_, err = atbctx.ToFloats(t.Context(), c, x)
	assert.ErrorIs(t, err, status.ErrInvalidTensorDType)
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		f, err := atbctx.FromFloats(c, d, []float32{1, -2.5}, 2)
		require.NoError(t, err)
		got, err := atbctx.ToFloats(t.Context(), c, f)
		require.NoError(t, err)
		assert.Equal(t, []float32{1, -2.5}, got, "%s", d)
	}
	_, err = atbctx.FromFloats(c, tensor.Int8, []float32{1}, 1)
	assert.ErrorIs(t, err, status.ErrInvalidTensorDType)
	for _, dims := range [][]int64{{4}, {2, 2, 2}, {-6}, {1 << 62, 4}} {
		_, err = atbctx.FromSlice(c, []int32{1, 2, 3, 4, 5, 6}, dims...)
		assert.ErrorIs(t, err, status.ErrInvalidTensorSize, "%v", dims)
		_, err = atbctx.Wrap([]int32{1, 2, 3, 4, 5, 6}, dims...)
		assert.ErrorIs(t, err, status.ErrInvalidTensorSize, "%v", dims)
	}
	_, err = atbctx.NewTensor(c, tensor.Of(tensor.Float32, 0, 2))
	assert.ErrorIs(t, err, status.ErrInvalidTensorSize)
	_, err = atbctx.NewTensor(c, tensor.Desc{})
	assert.ErrorIs(t, err, status.ErrInvalidTensorDim)
	h := atbctx.Host([]int64{7, 8})
	assert.Equal(t, tensor.Of(tensor.Int64, 2), h.Desc)
	assert.True(t, h.Data.IsNil())
}

// Contexts of one device and one shared cache are used by goroutines at once.
func TestContextsOfOneDevice(t *testing.T) {
	d := openDevice(t)
	shared, err := tilingcache.NewGlobal(4)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			c, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithGlobalCache(shared), atbctx.WithPolicy([]string{"overall", "multi-stream"}[n%2]))
			if !assert.NoError(t, err) {
				return
			}
			for i := range 20 {
				x, err := atbctx.FromSlice(c, []int64{int64(n), int64(i)}, 2)
				assert.NoError(t, err)
				got, err := atbctx.ToSlice[int64](t.Context(), c, x)
				assert.NoError(t, err)
				assert.Equal(t, fmt.Sprint([]int64{int64(n), int64(i)}), fmt.Sprint(got))
				c.Stats()
			}
			assert.NoError(t, c.Close())
		})
	}
	wg.Wait()
}

// Tilings are told of the device's machine, or of the one that they are to cut for.
func TestWithMachine(t *testing.T) {
	assert.Equal(t, kernel.MachineOf(open(t).Device().Props()), open(t).Lowering().Machine)
	m := kernel.Machine{Cores: 3, L1: 1, L2: 2, L3: 3}
	c := open(t, atbctx.WithMachine(m))
	assert.Equal(t, m, c.Lowering().Machine)
	assert.Equal(t, m, c.Env().Machine)
}
