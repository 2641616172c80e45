package mempool

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

var onlineTypes = []SolverType{BruteForce, FirstFit, BestFit, Intervals}

func newTestSolver(t testing.TB, st SolverType) Solver {
	t.Helper()
	s, err := NewSolver(st)
	require.NoError(t, err)
	return s
}

func allocAll(t testing.TB, s Solver, sizes ...int64) []int64 {
	t.Helper()
	var offsets []int64
	for _, size := range sizes {
		off, err := s.Alloc(size)
		require.NoError(t, err)
		offsets = append(offsets, off)
	}
	return offsets
}

func freeAll(t testing.TB, s Solver, offsets ...int64) {
	t.Helper()
	for _, off := range offsets {
		require.NoError(t, s.Free(off))
	}
}

func TestSolverVectorDescending(t *testing.T) {
	for _, c := range []struct {
		solver          SolverType
		freed           int
		five, fif, peak int64
	}{
		{BruteForce, 5, 21, 26, 41},
		{FirstFit, 5, 0, 21, 36},
		{BestFit, 6, 0, 5, 21},
		{Intervals, 5, 0, 5, 21},
	} {
		t.Run(c.solver.String(), func(t *testing.T) {
			s := newTestSolver(t, c.solver)
			for range 2 {
				offs := allocAll(t, s, 6, 5, 4, 3, 2, 1)
				assert.Equal(t, []int64{0, 6, 11, 15, 18, 20}, offs)
				freeAll(t, s, offs[:c.freed]...)
				assert.Equal(t, []int64{c.five, c.fif}, allocAll(t, s, 5, 15))
				assert.Equal(t, c.peak, s.Peak())
				assert.Equal(t, int64(41), s.Requested())
				s.Reset()
				assert.Zero(t, s.Peak())
				assert.Zero(t, s.Requested())
			}
		})
	}
}

func TestSolverVectorAligned(t *testing.T) {
	for _, c := range []struct {
		solver SolverType
		offs   []int64
		peak   int64
	}{
		{BruteForce, []int64{4096, 4608, 5120, 6656}, 9728},
		{FirstFit, []int64{0, 1536, 4096, 5632}, 8704},
		{BestFit, []int64{0, 1536, 4096, 5632}, 8704},
		{Intervals, []int64{0, 512, 1536, 4096}, 7168},
	} {
		t.Run(c.solver.String(), func(t *testing.T) {
			s := newTestSolver(t, c.solver)
			offs := allocAll(t, s, 1024, 512, 2048, 512)
			assert.Equal(t, []int64{0, 1024, 1536, 3584}, offs)
			freeAll(t, s, offs[0], offs[2])
			got := allocAll(t, s, 512, 512, 1536)
			freeAll(t, s, offs[1])
			got = append(got, allocAll(t, s, 3072)...)
			assert.Equal(t, c.offs, got)
			assert.Equal(t, c.peak, s.Peak())
			assert.Equal(t, int64(9728), s.Requested())
		})
	}
}

// Cases where one rule of a type decides.
func TestSolverRules(t *testing.T) {
	t.Run("best-fit takes the smallest, the earliest of equal ones", func(t *testing.T) {
		s := newTestSolver(t, BestFit)
		offs := allocAll(t, s, 9, 7, 8, 7, 1)
		freeAll(t, s, offs[:4]...)
		assert.Equal(t, []int64{9, 24, 16, 0}, allocAll(t, s, 6, 6, 6, 6))
	})
	t.Run("first-fit takes the lowest and uses it whole", func(t *testing.T) {
		s := newTestSolver(t, FirstFit)
		offs := allocAll(t, s, 9, 7, 1)
		freeAll(t, s, offs[:2]...)
		assert.Equal(t, []int64{0, 9, 17}, allocAll(t, s, 6, 3, 3))
	})
	t.Run("the top shrinks, the peak stays", func(t *testing.T) {
		for _, st := range []SolverType{FirstFit, BestFit, Intervals} {
			s := newTestSolver(t, st)
			offs := allocAll(t, s, 4, 4, 4)
			freeAll(t, s, offs[1], offs[2])
			assert.Equal(t, []int64{4}, allocAll(t, s, 20), st)
			assert.Equal(t, int64(24), s.Peak(), st)
		}
	})
	t.Run("intervals merge on both sides", func(t *testing.T) {
		s := newTestSolver(t, Intervals)
		offs := allocAll(t, s, 4, 4, 4, 4)
		freeAll(t, s, offs[0], offs[2], offs[1])
		assert.Equal(t, []int64{0}, allocAll(t, s, 12))
		assert.Equal(t, int64(16), s.Peak())
	})
	t.Run("brute force keeps what is freed", func(t *testing.T) {
		s := newTestSolver(t, BruteForce)
		freeAll(t, s, allocAll(t, s, 4)...)
		assert.Equal(t, []int64{4}, allocAll(t, s, 4))
	})
}

func TestSolverErrors(t *testing.T) {
	for _, st := range onlineTypes {
		t.Run(st.String(), func(t *testing.T) {
			s := newTestSolver(t, st)
			_, err := s.Alloc(-1)
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, "got -1")
			require.ErrorIs(t, s.Free(0), status.ErrInvalidParam)

			offs := allocAll(t, s, 10, 20)
			require.ErrorIs(t, s.Free(5), status.ErrInvalidParam)
			require.NoError(t, s.Free(offs[0]))
			err = s.Free(offs[0])
			require.ErrorIs(t, err, status.ErrInvalidParam, "second free")
			assert.ErrorContains(t, err, "offset 0")

			_, err = s.Alloc(math.MaxInt64 - 29)
			require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
			assert.Equal(t, int64(30), s.Peak())
			assert.Equal(t, int64(30), s.Requested())
		})
	}
	_, err := NewSolver(Optimal)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	_, err = NewSolver(17)
	assert.ErrorContains(t, err, "solver(17)")
}

func TestSolverEmptyItems(t *testing.T) {
	for _, st := range onlineTypes {
		t.Run(st.String(), func(t *testing.T) {
			s := newTestSolver(t, st)
			offs := allocAll(t, s, 0, 0, 16, 0, 8)
			assert.Equal(t, int64(24), s.Peak())
			assert.Equal(t, int64(24), s.Requested())
			require.Equal(t, offs[0], offs[2], "an empty item shares an offset here")

			freeAll(t, s, offs[0], offs[1])
			off, err := s.Alloc(16)
			require.NoError(t, err)
			assert.GreaterOrEqual(t, off, int64(24), "the item of 16 bytes is still live")
			freeAll(t, s, offs[2], offs[3], offs[4])
			require.ErrorIs(t, s.Free(offs[2]), status.ErrInvalidParam)
			freeAll(t, s, off)
		})
	}
}

// Random histories against the rule that live items are disjoint, and against
// the simplest model of each type.
func TestSolverRandomHistories(t *testing.T) {
	for _, st := range onlineTypes {
		t.Run(st.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, uint64(st)))
			s := newTestSolver(t, st)
			for range 20 {
				s.Reset()
				type item struct{ off, size int64 }
				var live []item
				var top int64
				var model blocks
				for range 300 {
					if len(live) > 0 && rng.IntN(5) < 2 {
						k := rng.IntN(len(live))
						require.NoError(t, s.Free(live[k].off))
						model.free(live[k].off)
						live = append(live[:k], live[k+1:]...)
						continue
					}
					size := rng.Int64N(100) + 1
					off, err := s.Alloc(size)
					require.NoError(t, err)
					for _, l := range live {
						require.False(t, off < l.off+l.size && l.off < off+size, "[%d,+%d) meets [%d,+%d)", off, size, l.off, l.size)
					}
					switch st {
					case BruteForce:
						require.Equal(t, s.Requested()-size, off)
					case Intervals:
						require.Equal(t, lowestRoom(live, func(l item) (int64, int64) { return l.off, l.size }, size), off)
					default:
						require.Equal(t, model.alloc(st, size), off)
					}
					live = append(live, item{off, size})
					top = max(top, off+size)
					require.Equal(t, top, s.Peak())
				}
			}
		})
	}
}

// blocks is a model of types 1 and 2 that looks at every block.
type blocks []struct {
	size int64
	used bool
}

func (m *blocks) alloc(st SolverType, size int64) int64 {
	pick := -1
	for i, b := range *m {
		if !b.used && b.size >= size && (pick < 0 || st == BestFit && b.size < (*m)[pick].size) {
			pick = i
		}
	}
	if pick < 0 {
		pick = len(*m)
		*m = append(*m, struct {
			size int64
			used bool
		}{size: size})
	}
	(*m)[pick].used = true
	return m.offset(pick)
}

func (m *blocks) offset(i int) (off int64) {
	for _, b := range (*m)[:i] {
		off += b.size
	}
	return off
}

func (m *blocks) free(off int64) {
	for i := range *m {
		if m.offset(i) == off {
			(*m)[i].used = false
		}
	}
	for len(*m) > 0 && !(*m)[len(*m)-1].used {
		*m = (*m)[:len(*m)-1]
	}
}

// lowestRoom finds by trial the lowest offset where size bytes meet no item.
func lowestRoom[T any](items []T, at func(T) (off, size int64), size int64) int64 {
	var best int64 = math.MaxInt64
	fits := func(off int64) bool {
		for _, it := range items {
			if o, n := at(it); off < o+n && o < off+size {
				return false
			}
		}
		return true
	}
	if fits(0) {
		return 0
	}
	for _, it := range items {
		o, n := at(it)
		if end := o + n; end < best && fits(end) {
			best = end
		}
	}
	return best
}

func TestSolverAllocatesNothingOnceWarm(t *testing.T) {
	for _, st := range onlineTypes {
		a := arena{strategy: newStrategy(st)}
		run := func() {
			a.reset()
			var blocks [16]int32
			for i := range 64 {
				if i >= 16 {
					a.give(blocks[i%16])
				}
				_, blocks[i%16] = a.alloc(int64(i*37%11 + 1))
			}
		}
		assert.Zero(t, testing.AllocsPerRun(10, run), st)
	}
}

func TestSolverTypeText(t *testing.T) {
	names := []string{"brute-force", "first-fit", "best-fit", "intervals", "optimal"}
	require.Len(t, names, SolverTypes)
	for i, name := range names {
		st := SolverType(i)
		assert.Equal(t, name, st.String())
		for _, text := range []string{name, string(rune('0' + i))} {
			got, err := ParseSolverType(text)
			require.NoError(t, err)
			assert.Equal(t, st, got)
		}
		js, err := json.Marshal(map[string]SolverType{"solver": st})
		require.NoError(t, err)
		assert.JSONEq(t, `{"solver":"`+name+`"}`, string(js))
		var back map[string]SolverType
		require.NoError(t, json.Unmarshal(js, &back))
		assert.Equal(t, st, back["solver"])
	}
	for _, bad := range []string{"", "5", "-1", " 1", "01", "Optimal", "first_fit"} {
		_, err := ParseSolverType(bad)
		require.ErrorIs(t, err, status.ErrInvalidParam, bad)
	}
	assert.Equal(t, "solver(9)", SolverType(9).String())
	_, err := SolverType(9).MarshalText()
	require.ErrorIs(t, err, status.ErrInvalidParam)
}
