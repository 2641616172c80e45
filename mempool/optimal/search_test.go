package optimal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// What the solver says is smallest fits, and one unit less does not, by trying
// all offsets.
func TestSmallAgainstAllOffsets(t *testing.T) {
	var s Solver
	for _, c := range []struct {
		kind        string
		cases, most int
	}{{"plain", 20_000, 15}, {"aligned", 2000, 8}, {"fixed", 2000, 8}} {
		above := 0
		for seed := range uint64(c.cases) {
			rng := rand.New(rand.NewPCG(seed, 1))
			buffers := crowded(rng, 3+rng.IntN(4), 8+rng.Int64N(16))
			if len(buffers) > c.most {
				continue
			}
			if c.kind != "plain" {
				for i := range buffers {
					buffers[i].Align = 1 << rng.IntN(3)
				}
			}
			if c.kind == "fixed" {
				buffers[0].Align, buffers[0].Fixed = 1, rng.Int64N(12)
			}
			r := solve(t, &s, buffers, Options{})
			require.Equal(t, r.Arena, r.Bound)
			if r.Arena > s.bound()*s.unit {
				above++
				require.False(t, fits(buffers, r.Arena-1), "%s %d: %+v", c.kind, seed, buffers)
			}
		}
		t.Logf("%s: %d smallest arenas above the bound", c.kind, above)
		assert.Greater(t, above, 5, c.kind)
	}
}

// Every order alone decides every arena, whichever way it is cut into turns.
func TestEveryOrderIsComplete(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 2))
		buffers := crowded(rng, 3+rng.IntN(6), 8+rng.Int64N(16))
		var s Solver
		best := solve(t, &s, buffers, Options{}).Arena / s.unit
		for _, o := range orders {
			for limit := best - 2; limit <= best+1; limit++ {
				want := found
				if limit < best {
					want = exhausted
				}
				var whole, turns lane
				whole.start(&s.problem, o, limit)
				require.Equal(t, want, whole.run(math.MaxInt64/2), "%s at %d of %d", o.name, limit, best)
				turns.start(&s.problem, o, limit)
				for turns.run(1) == searching {
				}
				require.Equal(t, whole.state, turns.state)
				require.Equal(t, whole.nodes, turns.nodes)
				require.Equal(t, whole.slot, turns.slot)
			}
		}
	}
}

// A search that took everything back is where it started: nothing of the parts
// that were solved on the way is left.
func TestTakingBackRestoresTheState(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var p problem
		p.load(randomBuffers(rng, 40, 20, 50), 20)
		for _, o := range orders {
			var l, fresh lane
			l.start(&p, o, p.bound()+1)
			fresh.start(&p, o, p.bound()+1)
			l.run(1 + rng.Int64N(300))
			for len(l.frames) > 0 {
				l.takeBack()
			}
			mark := len(fresh.trail)
			for k := len(l.trail) - 1; k >= mark; k-- {
				if c := l.trail[k]; c.buffer >= 0 {
					l.slot[c.buffer].least = c.old
				} else {
					l.slot[^c.buffer].ground = c.old
				}
			}
			require.Equal(t, fresh.slot, l.slot)
			require.Equal(t, fresh.waiting, l.waiting)
			require.Equal(t, fresh.room, l.room)
			require.Equal(t, fresh.cross, l.cross)
			require.Len(t, l.saved, 0)
			require.Equal(t, fresh.parts, l.parts)
			require.Equal(t, fresh.lists, l.lists)
		}
	}
}

func TestSolvePerfectPackings(t *testing.T) {
	for _, c := range []struct {
		n, width int
		height   int64
		nodes    int64
		solved   int
	}{
		{50, 1 << 20, 1 << 20, 100_000, 20},
		{50, 20, 100, 300_000, 20},
		{200, 1 << 20, 1 << 20, 400_000, 19},
		{200, 1000, 1000, 400_000, 18},
	} {
		solved := 0
		for seed := range uint64(20) {
			buffers := perfect(rand.New(rand.NewPCG(seed, 4)), c.n, c.width, c.height)
			var s Solver
			if r := solve(t, &s, buffers, Options{Nodes: c.nodes}); r.Arena == c.height {
				require.Equal(t, c.height, r.Bound)
				solved++
			}
		}
		assert.GreaterOrEqual(t, solved, c.solved, "%+v", c)
		t.Logf("n %d, width %d: %d of 20 solved", c.n, c.width, solved)
	}
}

func TestOptions(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	buffers := randomBuffers(rng, 60, 30, 1000)
	var s Solver
	best := solve(t, &s, buffers, Options{Nodes: 200_000})
	require.NotNil(t, best.Offsets)

	r := solve(t, &s, buffers, Options{Nodes: 200_000, Below: best.Bound})
	assert.Nil(t, r.Offsets, "nothing is smaller than the bound")
	assert.Equal(t, best.Bound, r.Arena)

	r = solve(t, &s, buffers, Options{Enough: 2 * best.Arena})
	assert.LessOrEqual(t, r.Arena, 2*best.Arena)
	assert.LessOrEqual(t, r.Nodes, int64(60), "the first dive does")

	r = solve(t, &s, buffers, Options{Nodes: 1})
	assert.LessOrEqual(t, r.Nodes, int64(len(orders)), "one node for each order")

	r = solve(t, &s, buffers, Options{Deadline: time.Now()})
	assert.LessOrEqual(t, r.Nodes, int64(clockNodes))

	for _, threads := range []int{2, 3, 100} {
		r = solve(t, &s, buffers, Options{Nodes: 200_000, Threads: threads})
		assert.LessOrEqual(t, r.Arena, best.Arena+best.Arena/50, "%d threads", threads)
	}
	assert.Equal(t, Result{Offsets: []int64{}}, solve(t, &s, nil, Options{}))
}

// Equal problems and bounds give equal results, in a used solver as in a new
// one, without allocations.
func TestSolveAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	small, large := randomBuffers(rng, 50, 20, 1000), randomBuffers(rng, 150, 70, 1000)
	for i := range small {
		small[i].Align = 8 << rng.IntN(3)
	}
	o := Options{Nodes: 30_000}
	var used Solver
	for range 2 {
		for _, buffers := range [][]Buffer{small, large} {
			var fresh Solver
			want := solve(t, &fresh, buffers, o)
			want.Offsets = slices.Clone(want.Offsets)
			require.Equal(t, want, solve(t, &used, buffers, o))
		}
	}
	assert.Zero(t, testing.AllocsPerRun(2, func() {
		for _, buffers := range [][]Buffer{small, large} {
			if _, err := used.Solve(buffers, 70, o); err != nil {
				t.Fatal(err)
			}
		}
	}))
}

func TestFixedBuffersThatOverlapHaveNoPlan(t *testing.T) {
	var s Solver
	r := solve(t, &s, []Buffer{{Upper: 2, Size: 4, Fixed: 0}, {Lower: 1, Upper: 3, Size: 4, Fixed: 2}}, Options{})
	assert.Nil(t, r.Offsets)
}

func TestSolveErrors(t *testing.T) {
	ok := Buffer{Upper: 1, Size: 1, Fixed: Free}
	for _, c := range []struct {
		name string
		b    Buffer
		code status.Code
		want string
	}{
		{"no section", Buffer{Lower: 1, Upper: 1, Size: 1, Fixed: Free}, status.ErrInvalidParam, "got 1 to 1"},
		{"before the first section", Buffer{Lower: -1, Upper: 1, Size: 1, Fixed: Free}, status.ErrInvalidParam, "got -1 to 1"},
		{"after the last section", Buffer{Upper: 4, Size: 1, Fixed: Free}, status.ErrInvalidParam, "within 0 to 3"},
		{"no size", Buffer{Upper: 1, Fixed: Free}, status.ErrInvalidParam, "size of at least 1, got 0"},
		{"odd alignment", Buffer{Upper: 1, Size: 1, Align: 12, Fixed: Free}, status.ErrInvalidParam, "power of two, got 12"},
		{"negative alignment", Buffer{Upper: 1, Size: 1, Align: -8, Fixed: Free}, status.ErrInvalidParam, "got -8"},
		{"misaligned", Buffer{Upper: 1, Size: 1, Align: 8, Fixed: 4}, status.ErrInvalidParam, "multiple of 8, got 4"},
		{"negative offset", Buffer{Upper: 1, Size: 1, Fixed: -2}, status.ErrInvalidParam, "got -2"},
		{"large", Buffer{Upper: 1, Size: math.MaxInt64, Fixed: Free}, status.ErrOutOfDeviceMemory, "buffer 1"},
		{"large alignment", Buffer{Upper: 1, Size: 1, Align: 1 << 62, Fixed: Free}, status.ErrOutOfDeviceMemory, "buffer 1"},
		{"far", Buffer{Upper: 1, Size: 1, Fixed: 1<<61 + 1}, status.ErrOutOfDeviceMemory, "buffer 1"},
	} {
		var s Solver
		_, err := s.Solve([]Buffer{ok, c.b}, 3, Options{})
		require.ErrorIs(t, err, c.code, c.name)
		assert.ErrorContains(t, err, c.want, c.name)
		assert.ErrorContains(t, err, "buffer 1", c.name)
	}
	var s Solver
	_, err := s.Solve(slices.Repeat([]Buffer{ok}, BuffersMax+1), 1, Options{})
	require.ErrorIs(t, err, status.ErrInvalidParam)
}

func TestLargestSizes(t *testing.T) {
	var s Solver
	r := solve(t, &s, []Buffer{
		{Upper: 2, Size: 1 << 59, Fixed: Free}, {Lower: 1, Upper: 3, Size: 1 << 59, Align: 1 << 58, Fixed: Free},
		{Lower: 2, Upper: 3, Size: 1<<59 - 1, Fixed: Free}, {Upper: 1, Size: 1, Fixed: 1 << 61},
	}, Options{})
	assert.Equal(t, int64(1<<61+1), r.Arena)
	assert.Equal(t, r.Arena, r.Bound)
}
