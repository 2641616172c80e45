package cpu

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
)

// prompt is a stream whose host has come in time often enough, with light launches
// that it keeps.
type prompt struct {
	*testing.T
	dev *Device
	s   *Stream
	k   *kept
	ran atomic.Int64
}

// holdingTest runs f in a bubble of virtual time.
func holdingTest(t *testing.T, f func(p *prompt)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d, err := New(WithWorkers(2))
		require.NoError(t, err)
		p := &prompt{T: t, dev: d}
		p.s = p.stream()
		count := device.Launch{Blocks: 1, Program: &device.Program{Name: "count", Run: func(*device.Args, int) error { p.ran.Add(1); return nil }}}
		k, err := p.s.Keep([]device.Launch{count, count})
		require.NoError(t, err)
		p.k = k.(*kept)
		p.k.took.Store(1)
		p.s.holding.prompt = promptEnough
		f(p)
		require.NoError(t, d.Close())
	})
}

func (p *prompt) stream() *Stream {
	s, err := p.dev.NewStream()
	require.NoError(p, err)
	return s.(*Stream)
}

func (p *prompt) event() device.Event {
	e, err := p.dev.NewEvent()
	require.NoError(p, err)
	return e
}

// hold enqueues light work and sees that it is held.
func (p *prompt) hold() {
	p.Helper()
	before := p.ran.Load()
	require.NoError(p, p.k.Run(0, 2))
	synctest.Wait()
	require.Equal(p, before, p.ran.Load(), "the work is held back")
}

// done sees that n launches were run since hold without a Synchronize.
func (p *prompt) done(n int) {
	p.Helper()
	synctest.Wait()
	require.EqualValues(p, n, p.ran.Load())
}

// A prompt host runs what is held when it synchronizes, and stays prompt.
func TestHeldForSynchronize(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		for n := 1; n <= 100; n++ {
			p.hold()
			require.NoError(p, p.s.Synchronize(p.Context()))
			require.EqualValues(p, 2*n, p.ran.Load())
		}
		require.Equal(p, promptMost, p.s.holding.prompt)
	})
}

// Without a Synchronize the work is run when its time is over, and the host has
// less credit.
func TestHeldIsRunInTheEnd(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		p.hold()
		<-time.After(holdTime)
		p.done(2)
		require.Zero(p, p.s.holding.prompt)
		require.NoError(p, p.k.Run(0, 2))
		synctest.Wait()
		require.EqualValues(p, 4, p.ran.Load(), "the stream's goroutine runs it at once")
		<-time.After(10 * holdTime)
		require.False(p, p.s.holding.armed, "an idle stream has no timer")
	})
}

// Whoever could notice that work is held makes it run.
func TestWhatEndsHolding(t *testing.T) {
	for name, f := range map[string]func(p *prompt) (more int){
		"query": func(p *prompt) int { require.False(p, p.s.Query()); return 0 },
		"launch": func(p *prompt) int {
			require.NoError(p, p.s.Launch(&device.Launch{Blocks: 1, Program: p.k.launches[0].prog, Buffers: nil}))
			return 1
		},
		"close": func(p *prompt) int { require.NoError(p, p.s.Close()); return 0 },
		"a large copy": func(p *prompt) int {
			x := device.Wrap(make([]byte, 2*lightBytes))
			require.NoError(p, p.s.Copy(x.At(0, lightBytes+1), x.At(0, lightBytes+1)))
			return 0
		},
		"many tasks": func(p *prompt) int {
			x := device.Wrap(make([]byte, 8))
			for range mostHeld {
				require.NoError(p, p.s.Copy(x, x))
			}
			return 0
		},
		"a slow kernel": func(p *prompt) int {
			p.k.took.Store(int64(lightTime) + 1)
			require.NoError(p, p.k.Run(0, 0))
			require.NoError(p, p.k.Run(0, 1))
			return 1
		},
		"event query": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			synctest.Wait()
			require.Zero(p, p.ran.Load(), "a record is held too")
			e.Query()
			return 0
		},
		"event synchronize": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			require.NoError(p, e.Synchronize(p.Context()))
			return 0
		},
		"a wait of another stream": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			require.NoError(p, p.stream().Wait(e))
			return 0
		},
		"a record that another stream waits for": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.stream().Wait(e))
			require.NoError(p, p.s.Record(e))
			return 0
		},
		"a record of another stream on the event": func(p *prompt) int {
			e := p.event()
			require.NoError(p, p.s.Record(e))
			require.NoError(p, p.stream().Record(e))
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			holdingTest(t, func(p *prompt) {
				p.hold()
				p.done(2 + f(p))
			})
		})
	}
}

// A queue that is full of what is held does not wait for itself.
func TestHeldFillsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := New(WithQueueDepth(2))
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		s.(*Stream).holding.prompt = promptMost
		x := device.Wrap(make([]byte, 8))
		for range 20 {
			require.NoError(t, s.Copy(x, x))
		}
		require.NoError(t, s.Synchronize(t.Context()))
		require.NoError(t, d.Close())
	})
}

// A host that comes late loses its credit, in time.
func TestLateHost(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		p.s.holding.prompt = promptMost
		rounds := 0
		for p.s.holding.prompt >= promptEnough {
			require.NoError(p, p.k.Run(0, 2))
			<-time.After(2 * lateHost)
			require.NoError(p, p.s.Synchronize(p.Context()))
			rounds++
		}
		require.Equal(p, promptMost/promptLoss, rounds)
	})
}

func TestCredit(t *testing.T) {
	var h holding
	for range 2 * promptMost {
		h.came(true, 0, nil)
	}
	require.Equal(t, promptMost, h.prompt)
	h.came(false, 0, nil)
	require.Equal(t, promptMost-promptLoss, h.prompt)
	h.since = time.Minute
	hour := func() time.Duration { return h.since + time.Hour }
	h.came(true, h.since+lateHost, hour)
	require.Equal(t, promptMost-promptLoss+1, h.prompt, "work of an hour would not have been done")
	for range promptMost {
		h.came(true, hour(), hour)
	}
	require.Zero(t, h.prompt)
}

// A stream that comes to a wait runs what is held before the record: both streams
// are run by the host, whose Synchronize asks for one of them.
func TestHeldForAWait(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		ahead, e := p.stream(), p.event()
		ahead.holding.prompt = promptEnough
		from, to := device.Wrap([]byte{1, 2, 3}), device.Wrap(make([]byte, 3))
		for n := 1; n <= 50; n++ {
			clear(to.Bytes())
			require.NoError(p, ahead.Copy(to, from))
			require.NoError(p, ahead.Record(e))
			require.NoError(p, p.s.Wait(e))
			p.hold()
			require.Equal(p, make([]byte, 3), to.Bytes(), "the copy is held too")
			require.NoError(p, p.s.Synchronize(p.Context()))
			require.EqualValues(p, 2*n, p.ran.Load())
			require.Equal(p, from.Bytes(), to.Bytes())
			require.True(p, ahead.head.Load() == ahead.tail.Load())
		}
		require.Zero(p, ahead.due.Load(), "its own goroutine had nothing to do")
		require.Greater(p, ahead.holding.prompt, promptEnough)
	})
}

// Only what is light is run for another stream; the rest is left to its own
// goroutine, and a wait behind the record too.
func TestHelpIsLight(t *testing.T) {
	holdingTest(t, func(p *prompt) {
		ahead, e, never := p.stream(), p.event(), p.event()
		ahead.holding.prompt = promptEnough
		require.NoError(p, ahead.Launch(&device.Launch{Blocks: 1, Program: p.k.launches[0].prog}))
		require.NoError(p, ahead.Record(e))
		require.NoError(p, ahead.Wait(never))
		require.NoError(p, p.s.Wait(e))
		require.NoError(p, p.k.Run(0, 2))
		require.NoError(p, p.s.Synchronize(p.Context()))
		require.EqualValues(p, 3, p.ran.Load())
		require.False(p, ahead.Query())
		require.NoError(p, p.s.Record(never))
		require.NoError(p, ahead.Synchronize(p.Context()))
	})
}

// TestHeldAtRandom enqueues random work on three streams whose tasks are held
// whenever they can be, with waits for what others have recorded, from one host
// that synchronizes and asks at random: every stream does its tasks in order, and
// none before what it waits for.
func TestHeldAtRandom(t *testing.T) {
	const streams = 3
	d, err := New(WithWorkers(2))
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(7, 8))
	var s [streams]*Stream
	var events [streams]device.Event
	var kept [streams]device.Kept
	var seen [streams]atomic.Int64 // launches done
	var wrong atomic.Int64
	var want [streams][streams]int64 // what the stream's next tasks may rely on
	var done, at [streams]int64
	program := func(i int, check func() bool) *device.Program {
		return &device.Program{Name: "count", Run: func(*device.Args, int) error {
			if !check() {
				wrong.Add(1)
			}
			seen[i].Add(1)
			return nil
		}}
	}
	for i := range streams {
		x, err := d.NewStream()
		require.NoError(t, err)
		s[i] = x.(*Stream)
		events[i], err = d.NewEvent()
		require.NoError(t, err)
		kept[i], err = s[i].Keep([]device.Launch{{Blocks: 1, Program: program(i, func() bool { return true })}})
		require.NoError(t, err)
	}
	for range 20000 {
		i, j := rng.IntN(streams), rng.IntN(streams)
		s[i].put.Lock()
		s[i].holding.prompt = promptMost
		s[i].put.Unlock()
		switch rng.IntN(8) {
		case 0, 1:
			require.NoError(t, kept[i].Run(0, 1))
			done[i]++
		case 2:
			before, rely := done[i], want[i]
			require.NoError(t, s[i].Launch(&device.Launch{Blocks: 1, Program: program(i, func() bool {
				ok := seen[i].Load() == before
				for k := range rely {
					ok = ok && seen[k].Load() >= rely[k]
				}
				return ok
			})}))
			done[i]++
		case 3:
			require.NoError(t, s[i].Record(events[i]))
			at[i] = done[i]
		case 4, 5:
			if i != j && at[j] > 0 {
				require.NoError(t, s[i].Wait(events[j]))
				want[i][j] = at[j]
			}
		case 6:
			require.NoError(t, s[i].Synchronize(t.Context()))
			require.Equal(t, done[i], seen[i].Load())
		case 7:
			if s[i].Query() {
				require.Equal(t, done[i], seen[i].Load())
			}
			require.NoError(t, events[j].Synchronize(t.Context()))
			require.GreaterOrEqual(t, seen[j].Load(), at[j])
		}
	}
	require.NoError(t, d.Close())
	require.Zero(t, wrong.Load())
	for i := range streams {
		require.Equal(t, done[i], seen[i].Load())
	}
}

// A host that slept until its work was done finds the turn free, whoever has the
// processor: it may run what it enqueues next by itself.
func TestWokenHostFindsTheTurnFree(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	d, err := New(WithWorkers(1), WithSpin(0))
	require.NoError(t, err)
	st, err := d.NewStream()
	require.NoError(t, err)
	s := st.(*Stream)
	untilWatched := &device.Program{Name: "until watched", Run: func(*device.Args, int) error {
		for s.attention.Load() == 0 {
			runtime.Gosched()
		}
		return nil
	}}
	free := 0
	for range 20 {
		require.NoError(t, s.Launch(&device.Launch{Blocks: 1, Program: untilWatched}))
		require.NoError(t, s.Synchronize(t.Context()))
		if !s.turn.Load() {
			free++
		}
	}
	require.Positive(t, free, "of 20 times")
	require.NoError(t, d.Close())
}

// Launches that have never run are light where their costs say so, and nothing is
// expected of one whose cost or tiling is not known.
func TestExpectedTime(t *testing.T) {
	costs := func(bytes, flops int64) *device.Program {
		return &device.Program{Name: "costs", Run: func(*device.Args, int) error { return nil }, Cost: func([]byte, uint64, int) device.Cost {
			return device.Cost{Bytes: bytes, Flops: flops}
		}}
	}
	none := *costs(0, 0)
	none.Cost = nil
	in := []byte{1}
	for name, x := range map[string]struct {
		launches []device.Launch
		want     time.Duration
	}{
		"nothing":       {nil, 0},
		"little":        {[]device.Launch{{Program: costs(4000, 0), Inline: in}, {Program: costs(0, 16000), Inline: in}}, 5 * time.Microsecond},
		"much":          {[]device.Launch{{Program: costs(4e9, 0), Inline: in}}, time.Second + time.Microsecond},
		"no cost":       {[]device.Launch{{Program: costs(1, 1), Inline: in}, {Program: &none, Inline: in}}, 0},
		"tiling behind": {[]device.Launch{{Program: costs(1, 1), Tiling: device.Wrap(in)}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			holdingTest(t, func(p *prompt) {
				for i := range x.launches {
					x.launches[i].Blocks = 1
				}
				k, err := p.s.Keep(x.launches)
				require.NoError(p, err)
				require.EqualValues(p, x.want, k.(*kept).took.Load())
			})
		})
	}
}

// A host that waits again and again uses the same slots, and a queue that was swept
// holds as many tasks as before.
func TestSlotsAreUsedAgain(t *testing.T) {
	for _, opts := range [][]Option{{WithQueueDepth(4)}, {WithQueueDepth(4), WithInline()}} {
		d, err := New(opts...)
		require.NoError(t, err)
		st, err := d.NewStream()
		require.NoError(t, err)
		s := st.(*Stream)
		x := device.Wrap(make([]byte, 8))
		used := map[*slot]bool{}
		for range 10 {
			for range 3 {
				used[s.slot(s.next)] = true
				require.NoError(t, s.Copy(x, x))
			}
			require.NoError(t, s.Synchronize(t.Context()))
		}
		require.Len(t, used, 3)
		ran := 0
		count := device.Launch{Blocks: 1, Program: &device.Program{Name: "count", Run: func(*device.Args, int) error { ran++; return nil }}, Buffers: []device.Buffer{x}, Inline: []byte{1}}
		for range 100 {
			require.NoError(t, s.Launch(&count))
		}
		require.NoError(t, s.Synchronize(t.Context()))
		require.Equal(t, 100, ran)
		require.NoError(t, d.Close())
	}
}
