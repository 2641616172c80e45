package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/mempool"
)

// 1 KiB of tiling costs 8 us, so a byte costs 7.8125 ns, which is 8.
const inlineByte = 0.008

func TestOneLaunch(t *testing.T) {
	b := newBed(t)
	require.NoError(t, b.s.Launch(launch(empty, 8)))
	exactly(t, 10+inlineByte, b.now())
	b.sync()
	start := 10 + inlineByte + 100
	require.Equal(t, 1, len(b.tasks("launch")))
	exactly(t, start, b.tasks("launch")[0][0])
	exactly(t, start+30, b.tasks("launch")[0][1])
	exactly(t, start+30+9, b.now())
	require.Equal(t, time.Duration((10+inlineByte+9)*1e3), b.dev.HostBusy(), "waiting is not working")
}

// On a busy stream a kernel follows the one before after the gap; the host runs
// ahead.
func TestBusyStream(t *testing.T) {
	b := newBed(t)
	for range 4 {
		require.NoError(t, b.s.Launch(launch(empty, 8)))
	}
	exactly(t, 4*(10+inlineByte), b.now())
	b.sync()
	first := 10 + inlineByte + 100
	for i, x := range b.tasks("launch") {
		exactly(t, first+float64(i)*32, x[0])
	}
	exactly(t, first+3*32+30+9, b.now())
}

// The launch queue holds 16 tasks: the 17th launch waits until one is done.
func TestFullQueue(t *testing.T) {
	b := newBed(t)
	for range 16 {
		require.NoError(t, b.s.Launch(launch(empty, 8)))
	}
	first := 10 + inlineByte + 100 + 30 // the first is done
	// At 160.128 two are done: 14 are in the queue, and the host is ahead of it.
	for range 40 {
		require.NoError(t, b.s.Launch(launch(empty, 8)))
	}
	st := b.s.Stats()
	assert.EqualValues(t, 16, st.DepthMax)
	assert.Positive(t, st.QueueStalls)
	// A launch costs 10 us and a kernel takes 32, so the queue is full at the end:
	// the last launch had to wait for kernel 40 of 56.
	exactly(t, first+39*32+10+inlineByte, b.now())
	var waited time.Duration
	for _, s := range b.rec.Spans() {
		if s.Category == "queue" {
			waited += s.End.Sub(s.Start)
		}
	}
	exactly(t, b.now()-56*(10+inlineByte), float64(waited.Nanoseconds())/1e3, "what is not launching is waiting")
}

// An entry is fetched when the one four before it begins: kernels that are
// shorter than a quarter of the fetch time wait for it.
func TestPrefetch(t *testing.T) {
	p := roundProfile(t, cost{"kernel_fixed_vector", 1}, cost{"task_gap", 0}, cost{"task_fetch", 40}, cost{"launch_host", 0.1}, cost{"launch_to_start", 0})
	rec := trace.New("prefetch", 0)
	dev, err := sim.New(p, sim.WithRecorder(rec))
	require.NoError(t, err)
	defer dev.Close()
	s := newStream(t, dev)
	for range 100 {
		require.NoError(t, s.Launch(launch(empty, 8)))
	}
	require.NoError(t, s.Synchronize(t.Context()))
	tasks := rec.Tasks()
	exactly(t, 3.108, micros(tasks[3].Start), "the first four follow each other")
	exactly(t, 3.108+24*40, micros(tasks[99].Start), "then four take the time of a fetch")
}

func TestEventsOrderStreams(t *testing.T) {
	b := newBed(t)
	o, e := newStream(t, b.dev), newEvent(t, b.dev)
	require.NoError(t, o.Wait(e))                    // host 6
	require.NoError(t, o.Launch(launch(empty, 8)))   // host 16.008
	require.NoError(t, b.s.Launch(launch(empty, 8))) // host 26.016, runs 126.016 to 156.016
	require.NoError(t, b.s.Record(e))                // host 33.016, fires at 157.016
	require.NoError(t, o.Synchronize(t.Context()))   // wait ends at 160.016, kernel from 162.016 to 192.016
	exactly(t, 192.016+9, b.now())
	require.Len(t, b.tasks("wait"), 1)
	exactly(t, 157.016, b.tasks("wait")[0][0])
	exactly(t, 160.016, b.tasks("wait")[0][1])
}

// Kernels of two streams share the cores: a kernel that needs more than are free
// waits, and those behind it wait too.
func TestCoresAreShared(t *testing.T) {
	b := newBed(t)
	o := newStream(t, b.dev)
	require.NoError(t, b.s.Launch(launch(empty, 5))) // 110.008 to 140.008 on 5 cores
	require.NoError(t, o.Launch(launch(empty, 3)))   // 120.016 to 150.016 on the others
	require.NoError(t, b.s.Launch(launch(empty, 8))) // ready at 142.008, begins at 150.016
	require.NoError(t, b.s.Synchronize(t.Context()))
	x := b.tasks("launch")
	require.Len(t, x, 3)
	exactly(t, 110.008, x[0][0])
	exactly(t, 120.016, x[1][0])
	exactly(t, 150.016, x[2][0])
}

func TestCopies(t *testing.T) {
	b := newBed(t)
	pinned, err := b.dev.AllocHost(10000)
	require.NoError(t, err)
	onDevice, err := b.dev.Alloc(10000)
	require.NoError(t, err)
	at := func(i int) float64 { x := b.tasks("copy")[i]; return x[1] - x[0] }
	require.NoError(t, b.s.Copy(onDevice, pinned))
	b.sync()
	exactly(t, 50+1, at(0), "10 bytes per nanosecond")
	require.NoError(t, b.s.Copy(device.WrapHost(make([]byte, 10000)), onDevice))
	b.sync()
	exactly(t, 50+10, at(1), "pageable: 1 byte per nanosecond")
	require.NoError(t, b.s.Copy(onDevice.At(0, 5000), onDevice.At(5000, 5000)))
	b.sync()
	exactly(t, 50+10, at(2), "on the device: reads and writes of 1 byte per nanosecond")
	// Two copies of one direction take turns, those of two directions do not.
	o := newStream(t, b.dev)
	require.NoError(t, b.s.Copy(onDevice, pinned))
	require.NoError(t, o.Copy(onDevice, pinned))
	b.sync()
	require.NoError(t, o.Synchronize(t.Context()))
	x := b.tasks("copy")[3:]
	exactly(t, x[0][1], x[1][0])
}

func TestPollingCostsTime(t *testing.T) {
	b := newBed(t)
	e := newEvent(t, b.dev)
	require.NoError(t, b.s.Launch(launch(empty, 8)))
	require.NoError(t, b.s.Record(e))
	polls := 0
	for !b.s.Query() {
		polls++
	}
	assert.Equal(t, 30, polls, "the 31st, at 17.008 + 31 * 4, finds what happened at 141.008")
	before := b.now()
	require.True(t, b.dev.Host().Fired(e))
	exactly(t, before, b.now(), "asking for accounts is free")
	require.True(t, e.Query())
	exactly(t, before+4, b.now())
}

func TestHostWork(t *testing.T) {
	b := newBed(t)
	h := b.dev.Host()
	for _, tt := range []struct {
		work device.Work
		p    *device.Program
		want float64
	}{
		{device.SetupWork, nil, 2}, {device.PlanWork, nil, 1}, {device.LookupWork, empty, 0.25}, {device.LaunchWork, empty, 3}, {device.RingWork, nil, 0},
		{device.TilingWork, empty, 11}, {device.TilingWork, program("rmsnorm/go", device.Vector, 0, 0), 12}, {device.TilingWork, program("swiglu/go", device.Vector, 0, 0), 12},
		{device.TilingWork, program("matmul/go", device.Cube, 0, 0), 13}, {device.TilingWork, program("paged/go", device.Mix, 0, 0), 14},
	} {
		before := b.now()
		h.Begin(tt.work, tt.p)
		h.End(tt.work)
		exactly(t, before+tt.want, b.now(), tt.work)
	}
}

func TestKernelTime(t *testing.T) {
	// peak 500 flops per nanosecond, memory 1 byte per nanosecond.
	for _, tt := range []struct {
		name   string
		p      *device.Program
		blocks int
		want   float64 // microseconds
	}{
		{"nothing", program("binary/float", device.Vector, 0, 0), 1, 0},
		{"fixed", program("binary/float", device.Vector, 1e9, 0), 1, 30},
		{"bytes", program("binary/float", device.Vector, 1e9, 5000), 1, 30 + 5},
		{"flops", program("matmul/go", device.Cube, 5_000_000, 0), 8, 40 + 10},
		{"half of the cores", program("matmul/go", device.Cube, 5_000_000, 0), 4, 40 + 20},
		{"a last wave of one block", program("matmul/go", device.Cube, 4_500_000, 0), 9, 40 + 16},
		{"more flops than bytes", program("matmul/go", device.Cube, 5_000_000, 8000), 8, 40 + 10},
		{"more bytes than flops", program("matmul/go", device.Cube, 2_000_000, 8000), 8, 40 + 8 + 0.25*4},
		{"attention", program("paged/go", device.Mix, 500_000, 3000), 8, 60 + 3 + 0.25},
	} {
		b := newBed(t)
		require.NoError(t, b.s.Launch(launch(tt.p, tt.blocks)), tt.name)
		b.sync()
		x := b.tasks("launch")[0]
		exactly(t, tt.want, x[1]-x[0], tt.name)
	}
}

// What was used last comes from the shared cache of 1 MiB: 4 bytes per nanosecond
// instead of 1; results are written to it at 8.
func TestSharedCache(t *testing.T) {
	b := newBed(t)
	mem, err := b.dev.Alloc(4 << 20)
	require.NoError(t, err)
	run := func(p *device.Program, inputs int, bufs ...device.Buffer) float64 {
		l := launch(p, 1, bufs...)
		l.Inputs = inputs
		require.NoError(t, b.s.Launch(l))
		b.sync()
		x := b.tasks("launch")
		return x[len(x)-1][1] - x[len(x)-1][0] - 30
	}
	small, other, large := mem.At(0, 80_000), mem.At(1<<20, 40_000), mem.At(2<<20, 2<<20)
	read := func(n int64) *device.Program { return program("binary/float", device.Vector, 0, n) }
	exactly(t, 80, run(read(80_000), 1, small), "cold")
	exactly(t, 20, run(read(80_000), 1, small), "warm")
	exactly(t, 20+5, run(read(120_000), 1, small, other), "read and written")
	exactly(t, 10, run(read(40_000), 1, other), "just written")
	exactly(t, 2097.152, run(read(2<<20), 1, large), "larger than the cache")
	exactly(t, 80, run(read(80_000), 1, small), "which drove everything out")
	exactly(t, 50, run(read(50_000), 1, large), "a part of a large operand comes from memory")
	exactly(t, 50, run(read(50_000), 1, large))
	exactly(t, 7, run(program("binary/float", device.Vector, 0, 7000), 0), "bytes without operands")
}

func TestNumericsOff(t *testing.T) {
	b := newBed(t, sim.WithNumerics(false))
	require.False(t, b.dev.Props().Addressable)
	big, err := b.dev.Alloc(40 << 30)
	require.NoError(t, err)
	require.Nil(t, big.Bytes())
	_, err = b.dev.Alloc(40 << 30)
	require.ErrorContains(t, err, "free of", "64 GiB are all")
	small, err := b.dev.Alloc(4096)
	require.NoError(t, err)
	require.Len(t, small.Bytes(), 4096)
	ring, err := b.dev.Reserve(96 << 20)
	require.NoError(t, err)
	require.Len(t, ring.Bytes(), 96<<20)
	never := &device.Program{Name: "never", Run: func(*device.Args, int) error { panic("numerics are off") }}
	require.NoError(t, b.s.Launch(&device.Launch{Program: never, Blocks: 4, Buffers: []device.Buffer{big.At(1<<30, 4000)}, Inputs: 1}))
	b.sync()
	x := b.tasks("launch")[0]
	exactly(t, 30+4, x[1]-x[0], "the bytes of its operands")
	require.NoError(t, b.s.Copy(small, device.WrapHost([]byte{5: 7, 4095: 0})))
	require.NoError(t, b.s.Copy(big.At(0, 4096), small))
	b.sync()
	require.EqualValues(t, 7, small.Bytes()[5], "small memory is real")
	require.EqualValues(t, 2, b.s.Stats().Copies)
	require.NoError(t, b.dev.Free(big))
	require.Error(t, b.dev.Free(big))
	require.ErrorContains(t, b.s.Launch(&device.Launch{Program: never, Blocks: 1, Buffers: []device.Buffer{small, big}}), "operand 1")
	require.ErrorContains(t, b.s.Copy(big, big), "freed")
	_, err = b.dev.Alloc(60 << 30)
	require.NoError(t, err, "what was freed is free")
}

// A full ring lets the host wait: its account says for what.
func TestRingStall(t *testing.T) {
	b := newBed(t)
	mem, err := b.dev.Reserve(2 * 64)
	require.NoError(t, err)
	r, err := mempool.NewRing(b.dev, mem, 2, 64)
	require.NoError(t, err)
	for range 3 {
		blk, err := r.Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.s.Launch(launch(empty, 8)))
		require.NoError(t, r.Release(blk, b.s))
	}
	st := r.Stats()
	require.EqualValues(t, 1, st.Stalls)
	// The third take asks at 34.016 + 4 us and waits for the record at 141.008,
	// then for the round trip.
	require.EqualValues(t, (141.008-38.016+9)*1e3, st.StallNanos)
	var ring time.Duration
	for _, s := range b.rec.Spans() {
		if s.Category == "ring" {
			ring += s.End.Sub(s.Start)
		}
	}
	require.EqualValues(t, (141.008-38.016)*1e3, ring.Nanoseconds())
	require.Equal(t, 2, st.InUse)
	require.NoError(t, r.Close())
}

func TestSetProfile(t *testing.T) {
	b := newBed(t)
	require.ErrorContains(t, b.dev.SetProfile(nil), "nil")
	require.NoError(t, b.s.Launch(launch(empty, 1)))
	require.ErrorContains(t, b.dev.SetProfile(roundProfile(t)), "under way")
	b.sync()
	require.ErrorContains(t, b.dev.SetProfile(roundProfile(t, cost{"cores", 9})), "cores")
	require.False(t, b.dev.Fits(roundProfile(t, cost{"queue_depth", 99})))
	p := roundProfile(t, cost{"launch_host", 50})
	require.True(t, b.dev.Fits(p))
	require.NoError(t, b.dev.SetProfile(p))
	before := b.now()
	require.NoError(t, b.s.Launch(launch(empty, 1)))
	exactly(t, before+50+inlineByte, b.now())
	_, err := sim.New(nil)
	require.ErrorContains(t, err, "nil")
}

func TestSteadyCallsAllocateNothing(t *testing.T) {
	p, err := profile.ByName("gpu")
	require.NoError(t, err)
	dev, err := sim.New(p)
	require.NoError(t, err)
	defer dev.Close()
	s := newStream(t, dev)
	mem, err := dev.Alloc(1024)
	require.NoError(t, err)
	l := launch(empty, 8, mem.At(0, 64), mem.At(64, 64))
	step := func() {
		for range 50 {
			require.NoError(t, s.Launch(l))
		}
		require.NoError(t, s.Copy(mem.At(0, 8), mem.At(8, 8)))
		require.NoError(t, s.Synchronize(t.Context()))
	}
	step()
	require.Zero(t, testing.AllocsPerRun(20, step))
}
