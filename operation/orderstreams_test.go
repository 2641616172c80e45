package operation_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/checked"
	"goatb/operation"
	"goatb/status"
)

// on makes an operation on a stream; -1 leaves the stream to the graph.
func on(t testing.TB, stream int, s operation.Spec) *operation.Op {
	t.Helper()
	o := newOp(t, s)
	if stream >= 0 {
		require.NoError(t, o.SetStream(stream))
	}
	return o
}

// ordered builds a graph whose streams are put in order; events counts the
// events made.
func (b *bed) ordered(g *operation.GraphBuilder, events *int) *operation.Op {
	b.Helper()
	o, err := g.OrderStreams(func() (device.Event, error) {
		*events++
		return b.dev.NewEvent()
	}).Build()
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, o.Close()) })
	return o
}

// TestOrderStreams runs a chain that goes from stream to stream at every link,
// with a side branch that joins it, given in reverse order.
func TestOrderStreams(t *testing.T) {
	const n, links = 1 << 16, 12
	for _, policy := range policies {
		t.Run("policy="+policy, func(t *testing.T) {
			b := newBed(t, atbctx.WithPolicy(policy), atbctx.WithStreams(3))
			g := operation.BuildGraph("zigzag", []string{"x", "one"}, []string{"y"})
			name := func(i int) string { return "t" + string(rune('a'+i)) }
			g.Add(on(t, 2, add()), []string{name(links), "side"}, []string{"y"})
			for i := links - 1; i >= 0; i-- {
				g.Add(on(t, i%3, add()), []string{name(i), "one"}, []string{name(i + 1)})
			}
			g.Add(on(t, 1, add()), []string{name(0), "one"}, []string{"side"})
			g.Add(on(t, -1, muls(2)), []string{"x"}, []string{name(0)})
			var events int
			o := b.ordered(g, &events)
			// From the first to its two readers, eleven links, and both ends of
			// the join but for the one on stream 2, where the chain ends too.
			require.Equal(t, 2+links-1+1, events)
			x, one := make([]float32, n), make([]float32, n)
			want := make([]float32, n)
			for i := range x {
				x[i], one[i] = float32(i%100), 1
				want[i] = 2*x[i] + links + 2*x[i] + 1
			}
			p := b.pack(o, b.f32(x), b.f32(one))
			ws := b.setup(o, p)
			for range 5 {
				b.execute(o, p, ws)
			}
			require.Equal(t, want, b.values(p.Out[0]))
		})
	}
}

// TestOrderStreamsBeforeOverwriting updates a tensor in place on one stream
// while another reads its old value, and then its new one.
func TestOrderStreamsBeforeOverwriting(t *testing.T) {
	const n = 1 << 16
	b := newBed(t, atbctx.WithStreams(2))
	g := operation.BuildGraph("update", []string{"x"}, []string{"old", "new"})
	g.Add(on(t, 1, muls(1)), []string{"x"}, []string{"t"})
	g.Add(on(t, 0, muls(3)), []string{"t"}, []string{"old"})
	g.Add(on(t, 1, muls(10)), []string{"t"}, []string{"t"})
	g.Add(on(t, 0, muls(3)), []string{"t"}, []string{"new"})
	var events int
	o := b.ordered(g, &events)
	require.Equal(t, 3, events)
	x := slices.Repeat([]float32{2}, n)
	p := b.pack(o, b.f32(x))
	ws := b.setup(o, p)
	for range 5 {
		b.execute(o, p, ws)
	}
	require.Equal(t, slices.Repeat([]float32{6}, n), b.values(p.Out[0]))
	require.Equal(t, slices.Repeat([]float32{60}, n), b.values(p.Out[1]))
}

// TestOrderStreamsOnlyWhereNeeded makes no event on one stream, between readers,
// and around events of the caller; nodes without a stream follow the graph, also
// when it moves later.
func TestOrderStreamsOnlyWhereNeeded(t *testing.T) {
	b := newBed(t, atbctx.WithStreams(2))
	one := operation.BuildGraph("one", []string{"x"}, []string{"y", "z"})
	one.Add(on(t, -1, muls(2)), []string{"x"}, []string{"a"})
	one.Add(on(t, -1, muls(2)), []string{"a"}, []string{"y"})
	one.Add(on(t, 1, muls(2)), []string{"x"}, []string{"z"})
	one.Add(on(t, 1, record(b.event())), nil, nil)
	var events int
	b.ordered(one, &events)
	require.Zero(t, events)

	moved := operation.BuildGraph("moved", []string{"x"}, []string{"y"})
	moved.Add(on(t, -1, muls(2)), []string{"x"}, []string{"a"})
	moved.Add(on(t, 0, muls(2)), []string{"a"}, []string{"y"})
	o := b.ordered(moved, &events)
	require.Equal(t, 1, events, "the two part when the graph moves")
	require.NoError(t, o.SetStream(1))
	require.Equal(t, []float32{4}, b.run(o, b.f32([]float32{1})))
}

// TestOrderStreamsSatisfiesTheRaceFinder runs the chain on a device that finds
// kernels that no event orders; without OrderStreams it finds them.
func TestOrderStreamsSatisfiesTheRaceFinder(t *testing.T) {
	for _, order := range []bool{true, false} {
		b := newBed(t)
		b.dev = checked.New(b.dev)
		b.c = b.context(atbctx.WithStreams(2))
		g := operation.BuildGraph("pair", []string{"x"}, []string{"y"})
		g.Add(on(t, 0, muls(2)), []string{"x"}, []string{"a"})
		g.Add(on(t, 1, muls(2)), []string{"a"}, []string{"y"})
		if order {
			g.OrderStreams(b.dev.NewEvent)
		}
		o, err := g.Build()
		require.NoError(t, err)
		b.Cleanup(func() { require.NoError(t, o.Close()) })
		p := b.pack(o, b.f32([]float32{1}))
		ws := b.setup(o, p)
		b.execute(o, p, ws)
		err = b.c.Synchronize(t.Context())
		if order {
			require.NoError(t, err)
			continue
		}
		found, ok := errors.AsType[*checked.Finding](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, checked.Race, found.Kind)
	}
}

func TestOrderStreamsReturnsErrors(t *testing.T) {
	none := errors.New("no more events")
	g := operation.BuildGraph("g", []string{"x"}, []string{"y"})
	g.AddNamed("first", on(t, 0, muls(2)), []string{"x"}, []string{"a"})
	g.AddNamed("second", on(t, 1, muls(2)), []string{"a"}, []string{"y"})
	_, err := g.OrderStreams(func() (device.Event, error) { return nil, none }).Build()
	require.ErrorIs(t, err, none)
	require.ErrorContains(t, err, "event between first and second")
	require.ErrorIs(t, err, status.ErrInvalidGraph)
}
