package tilingcache

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/tensor"
)

type params struct {
	Scale float32
	Mode  uint8
}

type tile struct{ Sum int64 }

// summing is a kernel whose tiling shows the problem it was made for.
func summing(name string) *kernel.Kernel {
	return kernel.Define(kernel.Def[params, tile]{
		Name: name,
		Tail: func(p *kernel.Problem, _ params) int { return len(p.Val) },
		Tile: func(p *kernel.Problem, a params, t *tile, _ []int64) (kernel.Grid, error) {
			t.Sum = digest(p, a)
			return kernel.Grid{Blocks: 1 + int(a.Mode), Key: uint64(a.Mode)}, nil
		},
		Run: func(*kernel.Args, int, *tile, []int64) error { return nil },
	})
}

func digest(p *kernel.Problem, a params) int64 {
	n := int64(a.Scale*1000) + int64(a.Mode)*7919
	for _, d := range p.In {
		for i := range d.Rank() {
			n = n*31 + d.Dim(i)
		}
	}
	for _, v := range p.Values {
		for _, x := range v {
			n = n*131 + x
		}
	}
	return n
}

var first, second = summing("test/first"), summing("test/second")

func problem(dims ...int64) *kernel.Problem {
	d := tensor.Of(tensor.Float32, dims...)
	return &kernel.Problem{
		In: []tensor.Desc{d}, Out: []tensor.Desc{d}, Val: []tensor.Desc{tensor.Of(tensor.Int32, 2)},
		Params: params{Scale: 1}, Machine: kernel.Machine{Cores: 2},
	}
}

// fill completes e as a runner does.
func fill(t testing.TB, k *kernel.Kernel, p *kernel.Problem, values [][]int64, e *Entry) {
	t.Helper()
	full := *p
	full.Values = values
	var err error
	e.Grid, err = k.Tile(&full, e.Bytes())
	require.NoError(t, err)
}

// changes are the parts of a key, each changed alone.
var changes = []struct {
	name   string
	change func(p *kernel.Problem)
}{
	{"dtype", func(p *kernel.Problem) { p.In[0].DType = tensor.Float16 }},
	{"format", func(p *kernel.Problem) { p.In[0].Format = tensor.FractalNZ }},
	{"rank", func(p *kernel.Problem) { p.In[0] = tensor.Of(tensor.Float32, 2, 3, 1) }},
	{"dimension", func(p *kernel.Problem) { p.In[0] = tensor.Of(tensor.Float32, 3, 2) }},
	{"number of inputs", func(p *kernel.Problem) { p.In = append(p.In, p.In[0]) }},
	{"absent input", func(p *kernel.Problem) { p.In = append(p.In, tensor.Desc{}) }},
	{"output", func(p *kernel.Problem) { p.Out[0] = tensor.Of(tensor.Float32, 6) }},
	{"values' descriptor", func(p *kernel.Problem) { p.Val[0] = tensor.Of(tensor.Int64, 2) }},
	{"operand moved from inputs to outputs", func(p *kernel.Problem) { p.In, p.Out = nil, append(p.In, p.Out...) }},
	{"float param", func(p *kernel.Problem) { p.Params = params{Scale: 2} }},
	{"int param", func(p *kernel.Problem) { p.Params = params{Scale: 1, Mode: 1} }},
	{"cores", func(p *kernel.Problem) { p.Machine.Cores = 3 }},
	{"cache size", func(p *kernel.Problem) { p.Machine.L2 = 1 }},
	{"shuffle", func(p *kernel.Problem) { p.Options.ShuffleK = true }},
	{"quantisation", func(p *kernel.Problem) { p.Options.QuantMinNeg127 = true }},
}

func TestEveryPartOfTheKeyCounts(t *testing.T) {
	values := [][]int64{{4, 5}}
	base := NewQuery(first, problem(2, 3))
	for _, tt := range changes {
		t.Run(tt.name, func(t *testing.T) {
			p := problem(2, 3)
			tt.change(p)
			for _, constantHash := range []bool{false, true} {
				other := NewQuery(first, p)
				if constantHash {
					other.hash = base.hash
				}
				assert.False(t, base.same(&other))
				assert.False(t, other.same(&base))
				checkMiss(t, &base, &other, values, values)
			}
		})
	}
	t.Run("kernel", func(t *testing.T) {
		other := NewQuery(second, problem(2, 3))
		other.hash = base.hash
		checkMiss(t, &base, &other, values, values)
	})
	for _, v := range [][][]int64{{{4, 6}}, {{5, 4}}, {{4}}, {{4, 5, 6}}, nil} {
		checkMiss(t, &base, &base, values, v)
	}
	equal := NewQuery(first, problem(2, 3))
	assert.True(t, base.same(&equal), "equal problems of two plans")
}

// checkMiss stores the tiling of one key and looks for another, in both levels.
func checkMiss(t *testing.T, stored, wanted *Query, values, wantedValues [][]int64) {
	t.Helper()
	l := NewLocal(4)
	l.Grow(1)
	e := l.Replace(0, stored, values)
	l.Keep(e)
	assert.Nil(t, l.Find(0, wanted, wantedValues))
	assert.Same(t, e, l.Find(0, stored, values))
	g, err := NewGlobal(4)
	require.NoError(t, err)
	g.Grow("op", 1)
	g.Store("op", e)
	assert.False(t, g.Find("op", l.Replace(0, wanted, wantedValues)))
	assert.True(t, g.Find("op", l.Replace(0, stored, values)))
}

// Shapes whose well-known 64-bit hash combination collides, under one hash for
// everything, in both orders: each finds its own tiling or none.
func TestEqualHashes(t *testing.T) {
	shapes := [][]int64{{3, 17, 1, 1}, {1, 152, 1, 1}}
	for _, order := range [][]int{{0, 1, 0, 1}, {1, 0, 1, 0}} {
		g, err := NewGlobal(5)
		require.NoError(t, err)
		g.Grow("op", 1)
		l := NewLocal(2)
		l.Grow(1)
		for _, s := range order {
			p := problem(shapes[s]...)
			q := NewQuery(first, p)
			q.hash = 7
			values := [][]int64{{1, 2}}
			e := l.Find(0, &q, values)
			if e == nil {
				e = l.Replace(0, &q, values)
				if !g.Find("op", e) {
					fill(t, first, p, values, e)
					g.Store("op", e)
				}
				l.Keep(e)
			}
			full := *p
			full.Values = values
			assert.Equal(t, digest(&full, params{Scale: 1}), int64(binary.LittleEndian.Uint64(e.Bytes())), "%v", shapes[s])
		}
		assert.Positive(t, g.Stats().Collisions)
		assert.Equal(t, 1, g.Stats().Entries, "of two keys with one hash one stays")
	}
}

func TestLocalSlotsGoRoundRobin(t *testing.T) {
	q := NewQuery(first, problem(2, 3))
	l := NewLocal(3)
	l.Grow(2)
	at := func(n int64) [][]int64 { return [][]int64{{n, 0}} }
	keep := func(n int64) *Entry {
		e := l.Replace(1, &q, at(n))
		l.Keep(e)
		return e
	}
	for n := range int64(3) {
		keep(n)
	}
	for n := range int64(3) {
		assert.NotNil(t, l.Find(1, &q, at(n)), "%d", n)
	}
	assert.Nil(t, l.Find(0, &q, at(0)), "each kernel has slots of its own")
	keep(3)
	assert.Nil(t, l.Find(1, &q, at(0)), "the oldest is replaced first")
	assert.NotNil(t, l.Find(1, &q, at(1)), "a hit does not protect")
	keep(4)
	assert.Nil(t, l.Find(1, &q, at(1)))
	for n := range int64(3) {
		assert.NotNil(t, l.Find(1, &q, at(n+2)), "%d", n+2)
	}
	unfinished := l.Replace(1, &q, at(9))
	assert.Nil(t, l.Find(1, &q, at(9)), "an entry is found when it is kept")
	l.Keep(unfinished)
	assert.Same(t, unfinished, l.Find(1, &q, at(9)))
	l.Grow(1)
	assert.NotNil(t, l.Find(1, &q, at(9)), "growing keeps what is cached")
}

func TestSpareIsNeverFound(t *testing.T) {
	q := NewQuery(first, problem(2, 3))
	l := NewLocal(2)
	l.Grow(1)
	values := [][]int64{{1, 2}}
	kept := l.Replace(0, &q, values)
	l.Keep(kept)
	other := [][]int64{{3, 4}}
	e := l.Spare(0, &q, other)
	assert.Len(t, e.Bytes(), q.Size())
	assert.Nil(t, l.Find(0, &q, other))
	assert.Same(t, kept, l.Find(0, &q, values), "a spare takes no slot")
	assert.Same(t, e, l.Spare(0, &q, values), "one for each kernel")
}

func TestEntriesAreAligned(t *testing.T) {
	l := NewLocal(1)
	l.Grow(1)
	for tail := range 40 {
		p := problem(2, 3)
		p.Val = make([]tensor.Desc, tail)
		q := NewQuery(first, p)
		b := l.Replace(0, &q, nil).Bytes()
		assert.Len(t, b, 8+8*tail)
		assert.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(b)))%kernel.Align)
	}
	empty := kernel.Define(kernel.Def[params, struct{}]{
		Name: "test/empty",
		Tile: func(*kernel.Problem, params, *struct{}, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(*kernel.Args, int, *struct{}, []int64) error { return nil },
	})
	q := NewQuery(empty, problem(1))
	l = NewLocal(1)
	l.Grow(1)
	assert.NotNil(t, l.Replace(0, &q, nil).Bytes(), "a tiling of no bytes is a tiling too")
}

func TestGlobalGrowsAndEvicts(t *testing.T) {
	_, err := NewGlobal(0)
	require.Error(t, err)
	g, err := NewGlobal(2)
	require.NoError(t, err)
	l := NewLocal(1)
	l.Grow(1)
	entry := func(n int64) *Entry {
		q := NewQuery(first, problem(n, 1))
		return l.Replace(0, &q, [][]int64{{1, 1}})
	}
	store := func(op string, n int64) { g.Store(op, entry(n)) }
	has := func(op string, n int64) bool { return g.Find(op, entry(n)) }

	store("a", 1)
	assert.False(t, has("a", 1), "a type that never grew keeps nothing")
	g.Grow("a", 1)
	for n := range int64(3) {
		store("a", n+1)
	}
	assert.False(t, has("a", 1), "two problems for one kernel: the least recently used goes")
	assert.True(t, has("a", 2))
	assert.True(t, has("a", 3))
	assert.False(t, has("b", 3), "each operation type has its own")
	assert.Equal(t, int64(1), g.Stats().Evicted)

	g.Grow("a", 2)
	for n := range int64(4) {
		store("a", n+2)
	}
	for n := range int64(4) {
		assert.True(t, has("a", n+2), "four problems for two kernels: %d", n+2)
	}
	g.Grow("a", 1)
	assert.True(t, has("a", 2), "a smaller graph of the type does not shrink it")
	assert.Equal(t, 1, g.Stats().Types)
	assert.Equal(t, 4, g.Stats().Entries)
	g.Purge()
	assert.False(t, has("a", 2))
	assert.Zero(t, g.Stats().Entries)
}

// Of one problem a Global keeps the tilings of several host values in turn.
func TestGlobalKeepsSeveralHostValues(t *testing.T) {
	g, err := NewGlobal(3)
	require.NoError(t, err)
	g.Grow("op", 1)
	l := NewLocal(1)
	l.Grow(1)
	p := problem(2, 3)
	q := NewQuery(first, p)
	at := func(n int64) [][]int64 { return [][]int64{{n, 1}} }
	for n := range int64(5) {
		e := l.Replace(0, &q, at(n))
		fill(t, first, p, at(n), e)
		g.Store("op", e)
	}
	for n := range int64(5) {
		e := l.Replace(0, &q, at(n))
		found := g.Find("op", e)
		assert.Equal(t, n >= 2, found, "%d", n)
		if found {
			want := *p
			want.Values = at(n)
			assert.Equal(t, digest(&want, params{Scale: 1}), int64(binary.LittleEndian.Uint64(e.Bytes())))
			assert.Equal(t, 1, e.Grid.Blocks)
		}
	}
	assert.Equal(t, 3, g.Stats().Entries)
}

// A cache must not keep a plan alive: only the problem.
func TestQueryKeepsItsOwnProblem(t *testing.T) {
	p := problem(2, 3)
	q := NewQuery(first, p)
	assert.NotSame(t, p, q.problem)
	p.Params = params{Scale: 9}
	assert.Equal(t, params{Scale: 1}, q.problem.Params)
}

func TestSharedByGoroutines(t *testing.T) {
	const goroutines, keys, rounds = 8, 100, 300
	g, err := NewGlobal(10)
	require.NoError(t, err)
	queries := make([]Query, keys)
	for i := range queries {
		queries[i] = NewQuery(first, problem(int64(i+1), 2))
	}
	var wg sync.WaitGroup
	wrong := make([]int, goroutines)
	for n := range goroutines {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			l := NewLocal(1)
			l.Grow(1)
			g.Grow("op", 1+n)
			for range rounds {
				i := rng.IntN(keys)
				v := [][]int64{{int64(rng.IntN(3)), 1}}
				p := *queries[i].problem
				p.Values = v
				e := l.Replace(0, &queries[i], v)
				if !g.Find("op", e) {
					var err error
					if e.Grid, err = first.Tile(&p, e.Bytes()); err != nil {
						wrong[n]++
					}
					g.Store("op", e)
				}
				if int64(binary.LittleEndian.Uint64(e.Bytes())) != digest(&p, params{Scale: 1}) {
					wrong[n]++
				}
				g.Stats()
			}
		})
	}
	wg.Wait()
	assert.Equal(t, make([]int, goroutines), wrong)
	s := g.Stats()
	assert.Equal(t, int64(goroutines*rounds), s.Hits+s.Misses)
	assert.Equal(t, s.Misses, s.Stored)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	g, err := NewGlobal(3)
	require.NoError(t, err)
	g.Grow("op", 1)
	l := NewLocal(2)
	l.Grow(1)
	p := problem(2, 3)
	q := NewQuery(first, p)
	length := int64(0)
	values := [][]int64{{0, 0}}
	full := *p
	full.Values = values
	step := func() {
		length++
		values[0][0] = length
		if e := l.Find(0, &q, values); e != nil {
			t.Error("no length comes twice")
		}
		e := l.Replace(0, &q, values)
		if !g.Find("op", e) {
			e.Grid, _ = first.Tile(&full, e.Bytes())
			g.Store("op", e)
		}
		l.Keep(e)
		if l.Find(0, &q, values) != e {
			t.Error("the tiling just kept is found")
		}
	}
	for range 10 {
		step()
	}
	assert.Zero(t, testing.AllocsPerRun(100, step))
}
