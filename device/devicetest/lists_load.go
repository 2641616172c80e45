package devicetest

import (
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

func listLoadChecks() []listCheck {
	noUpdate := listDefaults()
	noUpdate.NoTaskUpdate = true
	return []listCheck{
		{"capabilities", listDefaults(), checkCapabilities},
		{"no task update", noUpdate, checkNoUpdate},
		{"faults", listDefaults(), checkLoadFaults},
		{"unload", listDefaults(), checkUnload},
		{"load again", listDefaults(), checkLoadAgain},
		{"empty lists", listDefaults(), checkEmptyList},
		{"close with models", listDefaults(), checkCloseWithModels},
	}
}

func checkCapabilities(b *listBed) {
	for _, want := range []struct {
		c device.Capability
		n int64
	}{{device.CapTaskUpdate, 1}, {device.CapPrefetch, 2}} {
		got, err := b.models.Capability(want.c)
		require.NoError(b, err)
		require.Equal(b, want.n, got)
	}
	n, err := b.models.Capability(device.CapMaxBlocks)
	require.NoError(b, err)
	require.GreaterOrEqual(b, n, int64(1024))
	_, err = b.models.Capability(200)
	require.ErrorIs(b, err, status.ErrInvalidParam)
	closed := b.open(b.T)
	models, err := device.Models(closed)
	require.NoError(b, err)
	require.NoError(b, closed.Close())
	_, err = models.Capability(device.CapTaskUpdate)
	require.ErrorIs(b, err, status.ErrDeviceFail, "a query that fails is an error, not a no")
	_, err = device.LimitsOf(models)
	require.ErrorIs(b, err, status.ErrDeviceFail)
	_, err = models.Load(chain())
	require.ErrorIs(b, err, status.ErrDeviceFail)
}

func checkNoUpdate(b *listBed) {
	got, err := b.models.Capability(device.CapTaskUpdate)
	require.NoError(b, err)
	require.Equal(b, int64(0), got)
	_, err = b.models.Load(b.sunkOne(b.operation("op"), 2))
	require.ErrorIs(b, err, device.FaultNotSupported)
	require.ErrorIs(b, err, status.ErrDeviceFail)
	s, m := b.stream(), b.load(chain())
	m.replay(s, chainMoves(b.filled(16, 1), b.alloc(16), b.alloc(80)))
	s.sync()
}

// checkLoadFaults checks that a device asks TaskList.Check, whose own tests know
// all faults.
func checkLoadFaults(b *listBed) {
	for _, c := range []struct {
		name string
		edit func(l *device.TaskList, u *device.Update)
		want error
	}{
		{"null field", func(_ *device.TaskList, u *device.Update) { u.Binary = nil }, device.FaultNull},
		{"unbound stream", func(l *device.TaskList, _ *device.Update) { l.Streams = l.Streams[:1] }, device.FaultStreamModel},
		{"empty program", func(_ *device.TaskList, u *device.Update) { u.Binary = &device.Binary{} }, device.FaultProgramSize},
		{"not launched", func(_ *device.TaskList, u *device.Update) { u.Task = 90 }, device.FaultNotLaunched},
		{"event out of range", func(l *device.TaskList, _ *device.Update) { l.Events = 0 }, device.FaultEvent},
		{"engine", func(l *device.TaskList, _ *device.Update) { l.Tasks[0].Preprocess.Engine = 0 }, device.FaultEngine},
		{"no record", func(l *device.TaskList, _ *device.Update) { l.Tasks = l.Tasks[:len(l.Tasks)-1] }, device.FaultNoEnd},
	} {
		l := b.sunkOne(b.operation("op"), 2)
		c.edit(l, l.Tasks[len(l.Tasks)-2].Update)
		_, err := b.models.Load(l)
		require.ErrorIs(b, err, c.want, c.name)
	}
	_, err := b.models.Load(nil)
	require.ErrorIs(b, err, device.FaultNull)
	l := chain()
	l.Tasks[0].Kernel.Operands = append(l.Tasks[0].Kernel.Operands, device.Absolute(b.alloc(16).At(8, 16)))
	_, err = b.models.Load(l)
	require.ErrorIs(b, err, status.ErrInvalidTensorAddr)
	require.ErrorContains(b, err, "operand 2")
}

func checkUnload(b *listBed) {
	m := b.load(chain())
	s, release := b.stalled()
	in, out := b.filled(16, 1), b.alloc(16)
	m.replay(s, chainMoves(in, out, b.alloc(80)))
	done := make(chan error, 1)
	go func() { done <- m.Unload() }()
	b.settle()
	require.Empty(b, done, "an execution is enqueued")
	require.False(b, m.Query())
	release()
	require.NoError(b, <-done)
	require.True(b, m.Query())
	require.Equal(b, repeat(7, 16), out.Bytes())
	require.NoError(b, m.Unload())
	require.ErrorIs(b, m.Replay(s.Stream, nil), status.ErrInvalidParam)
	s.sync()
}

func checkLoadAgain(b *listBed) {
	o := b.operation("op")
	l := b.sunkOne(o, 2)
	s := b.stream()
	for n := range byte(5) {
		m := b.load(l)
		require.Equal(b, l.Initial(), m.States(nil))
		b.works(m, s, n)
		second := b.load(l)
		b.works(second, s, n+1)
		require.NoError(b, m.Unload())
		b.works(second, s, n+2)
		require.NoError(b, second.Unload())
	}
}

func checkEmptyList(b *listBed) {
	s := b.stream()
	for _, l := range []*device.TaskList{{}, {Name: "streams", Streams: []string{"a", "b"}}} {
		m := b.load(l)
		m.replay(s, nil)
		m.replay(s, &device.Refresh{})
		s.sync()
		require.Equal(b, int64(2), m.Stats().Replays)
	}
}

func checkCloseWithModels(b *listBed) {
	d := b.open(b.T)
	models, err := device.Models(d)
	require.NoError(b, err)
	inner := &listBed{bed: &bed{T: b.T, open: b.open, dev: d}, models: models}
	one, two := inner.load(chain()), inner.load(inner.sunkOne(inner.operation("op"), 2))
	s, out := inner.stream(), device.Wrap(make([]byte, 16))
	one.replay(s, chainMoves(inner.filled(16, 1), out, inner.alloc(80)))
	two.replay(s, moves(inner.value(1), inner.out()))
	require.NoError(b, d.Close())
	require.Equal(b, repeat(7, 16), out.Bytes(), "Close waits for executions")
	require.Error(b, one.Replay(s.Stream, nil))
	require.NoError(b, one.Unload())
}
