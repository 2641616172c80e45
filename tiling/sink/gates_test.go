package sink

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/status"
)

func TestMarkOfPrerequisite(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Op)
		want   bool
	}{
		{"value from the graph", func(*Op) {}, true},
		{"value from outside", func(o *Op) { o.Inputs[1].Producer = Outside }, true},
		{"constant", func(o *Op) { o.Inputs[1].Const = true }, false},
		{"constant, another shape unknown", func(o *Op) { o.Inputs[1].Const, o.Unknown = true, true }, true},
		{"not connected", func(o *Op) { o.Inputs = o.Inputs[:1] }, false},
		{"other input registered", func(o *Op) { o.Registration.Depends = 0b100 }, false},
		{"none registered", func(o *Op) { o.Registration.Depends = 0 }, false},
		{"no registration", func(o *Op) { o.Registration = nil }, false},
		{"second tensor of a dynamic input", func(o *Op) {
			o.Inputs[1].Const = true
			o.Inputs = append(o.Inputs, Input{Declared: 1, Producer: Outside})
		}, true},
		{"declared index behind an absent input", func(o *Op) {
			o.Inputs[1].Declared = 5
			o.Registration.Depends = 1 << 5
		}, true},
		{"declared index 63", func(o *Op) {
			o.Inputs[1].Declared = 63
			o.Registration.Depends = 1 << 63
		}, true},
		{"declared index 64 is in no mask", func(o *Op) {
			o.Inputs[1].Declared = 64
			o.Registration.Depends = ^uint64(0)
			o.Inputs = o.Inputs[1:]
		}, false},
	} {
		o := reading(1, Outside)
		tt.change(&o)
		m := must(building().Judge([]Op{o}))(t)[0]
		assert.Equal(t, tt.want, m.Depends, tt.name)
		if !tt.want {
			assert.Equal(t, Mark{}, m, "%s: nothing is set", tt.name)
			assert.Equal(t, "-", m.String())
		}
	}
}

// The gates are asked in their order: the first miss is the reason, whatever the
// later ones would say.
func TestGatesInOrder(t *testing.T) {
	asked := 0
	on := Choice{true, "session"}
	const cannot = "the device cannot update queued tasks"
	ask := func(why string) func() (string, error) {
		return func() (string, error) { asked++; return why, nil }
	}
	hostOnly := func(o *Op) { o.Registration.TileOn = kernel.OnHost; o.FixedAddresses = true }
	for _, tt := range []struct {
		name   string
		build  Build
		change func(*Op)
		asked  int
		want   Mark
	}{
		{"all pass", Build{Option: on, Capable: ask("")}, nil, 1, Mark{Depends: true, Sunk: true}},
		{"option", Build{Option: Choice{false, "graph"}, Capable: ask(cannot)}, hostOnly, 0,
			Mark{true, false, true, OptionGate, "ge.tiling_schedule_optimize is off (graph)"}},
		{"chip", Build{Option: on, Capable: ask(cannot)}, hostOnly, 1, Mark{true, false, true, ChipGate, cannot}},
		{"operator", Build{Option: on, Capable: ask("")}, hostOnly, 1,
			Mark{true, false, true, OperatorGate, "want placement TILING_ON_AICPU, got TILING_ON_HOST"}},
		{"refresh", Build{Option: on, Capable: ask("")}, func(o *Op) { o.FixedAddresses = true }, 1,
			Mark{true, false, true, RefreshGate, "its addresses cannot be refreshed"}},
		{"offline asks no device", Build{Option: on, Offline: true, Capable: ask(cannot)}, nil, 0, Mark{Depends: true, Sunk: true}},
		{"offline needs no device", Build{Option: on, Offline: true}, nil, 0, Mark{Depends: true, Sunk: true}},
		{"no kernel", Build{Option: on, Capable: ask(cannot)}, func(o *Op) { o.HostOnly = "it is a user's own" }, 0,
			Mark{Unknown: true, Reason: "it is a user's own"}},
		{"unknown shape", Build{Option: on, Capable: ask("")}, func(o *Op) { o.Unknown = true }, 0,
			Mark{Depends: true, Gate: UnknownShape, Reason: "a shape is not known before the graph runs"}},
	} {
		asked = 0
		o := reading(1, Outside)
		if tt.change != nil {
			tt.change(&o)
		}
		marks, err := tt.build.Judge([]Op{o})
		require.NoError(t, err, tt.name)
		assert.Equal(t, tt.want, marks[0], tt.name)
		assert.Equal(t, tt.asked, asked, tt.name)
		required := tt.build
		required.Require = true
		_, err = required.Judge([]Op{o})
		if tt.want.Gate == NoGate {
			assert.NoError(t, err, tt.name)
			continue
		}
		require.ErrorIs(t, err, status.ErrInvalidParam, tt.name)
		assert.ErrorContains(t, err, "Paged: gate: layer/paged: its tiling must run on the device and does not: "+tt.want.Gate.String()+": "+tt.want.Reason)
	}
}

func TestTheDeviceIsAskedOnce(t *testing.T) {
	asked := 0
	b := building()
	b.Capable = func() (string, error) { asked++; return "", nil }
	_, err := b.Judge([]Op{reading(1, Outside), reading(2, Outside), plain(3)})
	require.NoError(t, err)
	assert.Equal(t, 1, asked)
	_, err = b.Judge([]Op{plain(3)})
	require.NoError(t, err)
	assert.Equal(t, 1, asked, "nobody to judge")
}

func TestGateErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		build  func(*Build)
		change func(*Op)
		code   status.Code
		want   string
	}{
		{"no placement on the host", nil, func(o *Op) { o.Registration.TileOn = kernel.OnAICPU }, status.ErrInvalidParam,
			"Paged: gate: layer/paged: its tiling reads values: want placement TILING_ON_HOST, got TILING_ON_AICPU"},
		{"no placement on the host, option off", func(b *Build) { b.Option.On = false }, func(o *Op) { o.Registration.TileOn = kernel.OnAICPU }, status.ErrInvalidParam, "want placement TILING_ON_HOST"},
		{"the device does not answer", func(b *Build) { b.Capable = func() (string, error) { return "", errAsk } }, nil, status.ErrDeviceFail, "Paged: gate: layer/paged: no answer"},
		{"no device", func(b *Build) { b.Capable = nil }, nil, status.ErrDeviceFail, "no device to ask"},
		{"never times out", nil, func(o *Op) { o.NeverTimeout = true }, status.ErrInvalidParam, "Paged: gate: layer/paged: its kernel never times out"},
		{"no compile information", nil, func(o *Op) { o.CompileInfo = "" }, status.ErrInternal, "Paged: gate: layer/paged: it is sunk and has no compile information"},
	} {
		b, o := building(), reading(1, Outside)
		if tt.build != nil {
			tt.build(b)
		}
		if tt.change != nil {
			tt.change(&o)
		}
		_, err := b.Judge([]Op{plain(0), o})
		require.ErrorIs(t, err, tt.code, tt.name)
		assert.ErrorContains(t, err, tt.want, tt.name)
	}
	b := building()
	b.Capable = func() (string, error) { return "", errAsk }
	_, err := b.Judge([]Op{reading(1, Outside)})
	assert.ErrorIs(t, err, errAsk)
}

// What is not sunk may run for ever and needs no compile information.
func TestOnlySunkOperationsAreRefused(t *testing.T) {
	b := building()
	b.Option.On = false
	o := reading(1, Outside)
	o.NeverTimeout, o.CompileInfo = true, ""
	m := must(b.Judge([]Op{o}))(t)[0]
	assert.Equal(t, OptionGate, m.Gate)
}

// A graph of an operation tiled on the host alone, one that reads a constant,
// one with both placements, and one with an unknown shape.
func TestGraphOfFour(t *testing.T) {
	host, constant, both, where := reading(1, Outside), reading(2, Outside), reading(3, Outside), plain(4)
	host.Registration.TileOn, host.Name = kernel.OnHost, "add"
	constant.Inputs[1].Const, constant.Name = true, "add2"
	both.Name, where.Name, where.Type = "add3", "where", "Where"
	ops := []Op{host, constant, both, where}
	marks := marked(t, ops)
	var b strings.Builder
	require.NoError(t, WriteMarks(&b, ops, marks))
	assert.Equal(t, `1 Paged add: _dynamic_tiling_depend_op _force_unknown_shape (operator: want placement TILING_ON_AICPU, got TILING_ON_HOST)
2 Paged add2: -
3 Paged add3: _dynamic_tiling_depend_op _tiling_sink_op
4 Where where: -
`, b.String())
	assert.Equal(t, "add (Paged): operator: want placement TILING_ON_AICPU, got TILING_ON_HOST\n", Reasons(ops, marks))
	assert.Equal(t, []Segment{{0, 0, true}, {1, 3, false}}, Split(ops, marks))
	ops[3].Unknown = true
	marks = marked(t, ops)
	assert.Nil(t, Split(ops, marks), "a graph with an unknown shape is not captured")
	assert.Contains(t, Reasons(ops, marks), "where (Where): unknown shape: ")
}

func TestSplit(t *testing.T) {
	for pattern, want := range map[string][]Segment{
		"":     nil,
		"c":    {{0, 0, false}},
		"h":    {{0, 0, true}},
		"cch":  {{0, 1, false}, {2, 2, true}},
		"hhc":  {{0, 0, true}, {1, 1, true}, {2, 2, false}},
		"chcc": {{0, 0, false}, {1, 1, true}, {2, 3, false}},
	} {
		var ops []Op
		var marks []Mark
		for i, c := range pattern {
			ops, marks = append(ops, plain(int64(i))), append(marks, Mark{Unknown: c == 'h'})
		}
		assert.Equal(t, want, Split(ops, marks), pattern)
	}
}

// What another segment makes is there when a segment starts.
func TestSegmentCountsProducersInItself(t *testing.T) {
	ops := []Op{plain(0), plain(1), plain(2), reading(3, 1), reading(4, 2)}
	got := Segment{First: 2, Last: 4}.Ops(ops)
	require.Len(t, got, 3)
	assert.Equal(t, Outside, got[1].Inputs[1].Producer)
	assert.Equal(t, 0, got[2].Inputs[1].Producer)
	assert.Equal(t, 2, ops[4].Inputs[1].Producer, "the graph stays as it is")
}

func TestRegistration(t *testing.T) {
	set, err := Depending(0, 2, 63)
	require.NoError(t, err)
	assert.Equal(t, uint64(1|1<<2|1<<63), set)
	for _, i := range []int{-1, 64} {
		_, err := Depending(i)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "want an input from 0 to 63")
	}
	define := func(on kernel.Placement) *kernel.Kernel { return counting(on, nil) }
	assert.Equal(t, &Registration{Depends: 0b1100, TileOn: kernel.OnHost | kernel.OnAICPU, Function: "count/go"}, must(RegistrationOf(define(kernel.OnHost|kernel.OnAICPU), 2, 2))(t))
	assert.Equal(t, &Registration{Depends: 0b1, TileOn: kernel.OnHost}, must(RegistrationOf(define(0), 0, 1))(t), "the default placement has no function on the device")
	_, err = RegistrationOf(define(0), 64, 1)
	require.ErrorIs(t, err, status.ErrInvalidParam)
	assert.ErrorContains(t, err, "input 64")
}

func TestKeptOutOfSuperKernels(t *testing.T) {
	sunk, host := Mark{Depends: true, Sunk: true}, Mark{Depends: true, Unknown: true, Gate: OptionGate}
	for _, tt := range []struct {
		f    Fusion
		m    Mark
		want string
	}{
		{Fusion{Supported: true}, sunk, ""},
		{Fusion{Supported: true}, host, ""},
		{Fusion{Supported: true, EnsureReuse: true}, sunk, ""},
		{Fusion{Supported: true, EnsureReuse: true}, host, "must be reused"},
		{Fusion{Supported: true, LocalMemory: 1}, sunk, "threads"},
		{Fusion{}, sunk, "does not support"},
	} {
		o := reading(1, Outside)
		got := tt.f.KeptOut(o.Registration, &tt.m)
		if tt.want == "" {
			assert.Empty(t, got)
		} else {
			assert.Contains(t, got, tt.want)
		}
		tt.f.Scope = "scope"
		o.Fusion = tt.f
		ops := []Op{o}
		FuseScopes(ops, []Mark{tt.m}, true)
		assert.Equal(t, "scope", ops[0].Fusion.Scope, "a strict check keeps the scope")
		FuseScopes(ops, []Mark{tt.m}, false)
		assert.Equal(t, tt.want == "", ops[0].Fusion.Scope == "scope")
	}
	assert.Empty(t, (&Fusion{Supported: true, EnsureReuse: true}).KeptOut(&Registration{TileOn: kernel.OnHost}, &host), "only where it could be tiled on the device")
}
