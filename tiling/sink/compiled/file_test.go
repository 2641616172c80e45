package compiled

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
	"goatb/tiling/sink/sinktest"
)

// A plan from a file is the plan that was compiled, but for the tilings that it
// took on the host.
func TestFileGivesThePlanBack(t *testing.T) {
	for _, form := range sink.Forms() {
		t.Run(form.String(), func(t *testing.T) {
			f := decoded(t, encode(t, compile(t, form)))
			s := sinktest.Settings(form)
			want := planned(t, sinktest.Graph(), s)
			assert.Positive(t, want.HostTilings)
			got, err := f.Plan(sinktest.Graph(), s)
			require.NoError(t, err)
			require.NotNil(t, got)
			assert.Zero(t, got.HostTilings)
			assert.Equal(t, want.Ops, got.Ops)
			assert.Equal(t, want.Marks, got.Marks)
			assert.Equal(t, want.Segments, got.Segments)
			assert.Equal(t, want.Before, got.Before)
			assert.Equal(t, want.Wired, got.Wired)
			assert.Equal(t, s.Soc, got.Settings.Soc)
			assert.Len(t, got.Nodes, 4)
			for _, b := range got.Before {
				if b != nil {
					assert.True(t, device.Wrap(b.Data).Aligned(kernel.Align))
				}
			}
			plans, err := f.Plans()
			require.NoError(t, err)
			assert.Equal(t, want.Segments, plans[0].Segments)
			assert.Equal(t, want.Wired, plans[0].Wired)
		})
	}
}

func TestBytesAreThoseOfTheFile(t *testing.T) {
	data := encode(t, compile(t, sink.UpdateForm))
	f := decoded(t, data)
	assert.Equal(t, "a test", f.Source)
	assert.True(t, f.Offline)
	assert.Equal(t, data, encode(t, f))
	assert.Equal(t, data, encode(t, compile(t, sink.UpdateForm)), "equal graphs give equal bytes")
}

// Graphs of a name that the file does not have are not its business; of those that
// it has, equal ones are kept once.
func TestNamesAndDuplicates(t *testing.T) {
	f := compile(t, sink.UpdateForm)
	require.NoError(t, f.Add(planned(t, sinktest.Graph(), sinktest.Settings(sink.UpdateForm))))
	assert.Len(t, f.Units, 1)
	assert.True(t, f.Has("graph"))
	other := sinktest.Settings(sink.UpdateForm)
	other.Name = "other"
	assert.False(t, f.Has("other"))
	p, err := f.Plan(sinktest.Graph(), other)
	require.NoError(t, err)
	assert.Nil(t, p)
	larger := append(sinktest.Graph(), sinktest.Adding("third", sinktest.Adder, 1, 3))
	require.NoError(t, f.Add(planned(t, larger, sinktest.Settings(sink.UpdateForm))))
	assert.Len(t, f.Units, 2)
	for _, nodes := range [][]capture.Node{sinktest.Graph(), larger} {
		p, err := f.Plan(nodes, sinktest.Settings(sink.UpdateForm))
		require.NoError(t, err)
		assert.Len(t, p.Nodes, len(nodes))
	}
}

func TestOtherTargets(t *testing.T) {
	f, machine := compile(t, sink.FFTSPlusForm), sinktest.Machine()
	soc := f.Soc
	soc.Name = "Ascend910b3"
	require.NoError(t, f.Fits(sink.FFTSPlusForm, &soc, &machine), "however the name is written")
	another, err := sink.ProfileOf("310P3")
	require.NoError(t, err)
	deeper := f.Soc
	deeper.Prefetch = 9
	more := kernel.Machine{Cores: 3}
	for _, tt := range []struct {
		form sink.Form
		soc  *sink.Profile
		m    *kernel.Machine
		says string
	}{
		{sink.UpdateForm, &soc, &machine, "it is of form ffts, the context has update; compile it again in that form, or run in form ffts"},
		{sink.FFTSPlusForm, &another, &machine, "it is for SoC 910B3 (prefetch 8), the context has 310P3 (prefetch 10); compile it again for that one, or run for SoC 910B3"},
		{sink.FFTSPlusForm, &deeper, &machine, "the context has 910B3 (prefetch 9)"},
		{sink.FFTSPlusForm, &soc, &more, "its tilings are for a machine of 2 cores, caches of 0, 0 and 0 bytes, the device has 3 cores"},
	} {
		err := f.Fits(tt.form, tt.soc, tt.m)
		require.ErrorContains(t, err, tt.says)
		assert.ErrorIs(t, err, OtherTarget)
		assert.ErrorIs(t, err, status.ErrInvalidParam)
		s := sinktest.Settings(tt.form)
		s.Soc, s.Machine = *tt.soc, *tt.m
		assert.ErrorIs(t, f.Add(&capture.Plan{Settings: s}), OtherTarget, "nor is it added to")
	}
	f.Build = "v1.2.3"
	err = f.Fits(sink.FFTSPlusForm, &soc, &machine)
	assert.ErrorIs(t, err, OtherVersion)
	assert.ErrorContains(t, err, "want build without a version (go run, go test), got v1.2.3; compile it again with this program")
}

func TestBuildNames(t *testing.T) {
	assert.Empty(t, BuildName(), "a test does not know")
	dep := &debug.Module{Path: "goatb", Version: "v1.0.0", Sum: "h1:abc"}
	replaced := &debug.Module{Path: "goatb", Version: "v1.0.0", Replace: &debug.Module{Path: "../goatb"}}
	for want, info := range map[string]debug.BuildInfo{
		"v0.0.1+dirty":  {Main: debug.Module{Path: "goatb", Version: "v0.0.1+dirty"}},
		"":              {Main: debug.Module{Path: "goatb", Version: "(devel)"}},
		"v1.0.0 h1:abc": {Main: debug.Module{Path: "x", Version: "v9"}, Deps: []*debug.Module{{Path: "y", Version: "v8"}, dep}},
	} {
		assert.Equal(t, want, buildName(&info))
	}
	assert.Empty(t, buildName(&debug.BuildInfo{Main: debug.Module{Version: "v9"}, Deps: []*debug.Module{replaced}}), "a folder has no version")
}

// Whatever a unit depends on is compared, and the error says where and what.
func TestOtherGraphs(t *testing.T) {
	f := compile(t, sink.UpdateForm)
	wide := kernel.Define(kernel.Def[sinktest.Params, [2]sinktest.Total]{
		Name: sinktest.Adder.Name(), TileOn: sinktest.Adder.TileOn(), Keys: 2,
		Tile: func(*kernel.Problem, sinktest.Params, *[2]sinktest.Total, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(*kernel.Args, int, *[2]sinktest.Total, []int64) error { return nil },
	})
	for _, tt := range []struct {
		name   string
		change func(n []capture.Node)
		says   string
	}{
		{"name", func(n []capture.Node) { n[1].Label = sinktest.Label("primo", sinktest.Adder) }, `graph: capture: first: OTHER node: want "first", got "primo"`},
		{"kernel", func(n []capture.Node) {
			n[0].Kernel, n[0].Label = sinktest.Hosted, sinktest.Label("double", sinktest.Hosted)
		}, `kernel: want "doubler/go", got "hosted/go"`},
		{"shape", func(n []capture.Node) { n[0].Problem.In[0] = tensor.Of(tensor.Int64, 2, 2) }, `double: OTHER inputs: want "int64[4]", got "int64[2,2]"`},
		{"type of values", func(n []capture.Node) { n[1].Problem.Val[0].DType = tensor.Int64 }, `values: want "int32[4]", got "int64[4]"`},
		{"output", func(n []capture.Node) { n[0].Problem.Out[0] = tensor.Of(tensor.Int64, 4, 1) }, `outputs: want "int64[4]", got "int64[4,1]"`},
		{"parameter", func(n []capture.Node) { n[3].Problem.Params = sinktest.Params{Start: 22} }, `second: OTHER parameters: want "sinktest.Params{Start:21}", got "sinktest.Params{Start:22}"`},
		{"options", func(n []capture.Node) { n[1].Problem.Options.ShuffleK = true }, `options: want "{ShuffleK:false`},
		{"place of values", func(n []capture.Node) { n[1].Values[0].Off = 16 }, `places of values: want "16 bytes of input 1+0", got "16 bytes of input 1+16"`},
		{"makers of values", func(n []capture.Node) {
			n[1].Values[0] = capture.Value{Input: sink.Outside, Size: 16, Made: device.Address{Type: device.WorkspaceMemory, Off: 64, Size: 16}, Producers: []int{0}}
		}, `got "workspace made by nodes [0]"`},
		{"stream", func(n []capture.Node) { n[1].Stream = 1 }, `stream: want "0", got "1"`},
		{"operand", func(n []capture.Node) { n[0].Operands[0].Index = 3 }, `operands: want ["input 0+0" "output 0+0"], got ["input 3+0" "output 0+0"]`},
		{"operands", func(n []capture.Node) { n[0].Operands = n[0].Operands[:1] }, `operands: want`},
		{"what the host does", func(n []capture.Node) { n[2].HostOnly = "it works on an event" }, `own: OTHER what it says of its tiling: want`},
		{"layout", func(n []capture.Node) { n[1].Kernel = wide }, `layout of parameters and tiling: want "{Start@0 int64;}8 {Sum@0 int64;}8", got "{Start@0 int64;}8 [2]{Sum@0 int64;}8"`},
		{"event", func(n []capture.Node) { n[2].HostOnly, n[2].Pair = "", 1 }, `pair of events: want "0", got "1"`},
		{"wait", func(n []capture.Node) { n[2].Waits = true }, `waiting for an event: want "false", got "true"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := sinktest.Graph()
			tt.change(n)
			p, err := f.Plan(n, sinktest.Settings(sink.UpdateForm))
			assert.Nil(t, p)
			require.ErrorIs(t, err, OtherGraph)
			assert.ErrorIs(t, err, status.ErrInvalidGraph)
			text := fmt.Sprint(err)
			assert.Contains(t, text, "compile it again as it is now")
			for part := range strings.SplitSeq(tt.says, "OTHER") {
				assert.Contains(t, text, strings.TrimSpace(part))
			}
		})
	}
	_, err := f.Plan(sinktest.Graph()[:3], sinktest.Settings(sink.UpdateForm))
	assert.ErrorContains(t, err, "want 4 kernels and events, got 3")
	s := sinktest.Settings(sink.UpdateForm)
	s.Streams, s.Main = 2, 1
	_, err = f.Plan(sinktest.Graph(), s)
	assert.ErrorContains(t, err, "want 1 streams that are joined to number 0 of them, got 2 and 1")
}

// The unit that comes closest is the one that an error is about.
func TestClosestUnitIsNamed(t *testing.T) {
	f := compile(t, sink.UpdateForm)
	late, early := sinktest.Graph(), sinktest.Graph()
	late[3].Problem.Params = sinktest.Params{Start: 5}
	early[0].Problem.In[0] = tensor.Of(tensor.Int64, 4, 1)
	for _, n := range [][]capture.Node{late, early, sinktest.Graph()[:2]} {
		require.NoError(t, f.Add(planned(t, n, sinktest.Settings(sink.UpdateForm))))
	}
	n := sinktest.Graph()
	n[3].Problem.Params = sinktest.Params{Start: 6}
	_, err := f.Plan(n, sinktest.Settings(sink.UpdateForm))
	assert.ErrorContains(t, err, "none of 4 compiled for it fits; the closest differs: parameters")
}

// The memory of inputs that are read on the host does not count, nor do places in
// the workspace.
func TestWhatDoesNotCount(t *testing.T) {
	f := compile(t, sink.UpdateForm)
	n := sinktest.Graph()
	n[0].Operands[0] = device.Address{}
	n[1].Scratch.Off = 512
	n[1].Problem.Values = [][]int64{{1, 2, 3, 4}}
	p, err := f.Plan(n, sinktest.Settings(sink.UpdateForm))
	require.NoError(t, err)
	assert.NotNil(t, p)
	n[0].Operands[1] = device.Address{}
	_, err = f.Plan(n, sinktest.Settings(sink.UpdateForm))
	assert.ErrorIs(t, err, OtherGraph, "an output has memory")
}

func TestDeviceAndDemands(t *testing.T) {
	f := compile(t, sink.UpdateForm)
	s := sinktest.Settings(sink.UpdateForm)
	s.Build.Capable = func() (string, error) { return "", nil }
	_, err := f.Plan(sinktest.Graph(), s)
	require.NoError(t, err)
	s.Build.Capable = func() (string, error) { return "the device cannot update queued tasks", nil }
	_, err = f.Plan(sinktest.Graph(), s)
	assert.ErrorIs(t, err, OtherTarget)
	assert.ErrorContains(t, err, "it tiles on the device, and the device cannot update queued tasks; compile it again for this device's SoC, or with ge.tiling_schedule_optimize 0")
	lost := errors.New("no answer")
	s.Build.Capable = func() (string, error) { return "", lost }
	_, err = f.Plan(sinktest.Graph(), s)
	assert.ErrorIs(t, err, lost)

	off := sinktest.Settings(sink.UpdateForm)
	off.Build.Option.On = false
	f = New(off.Soc, off.Form, off.Machine, true)
	require.NoError(t, f.Add(planned(t, sinktest.Graph(), off)))
	p, err := f.Plan(sinktest.Graph(), s)
	require.NoError(t, err, "nothing to ask the device for")
	assert.Equal(t, sink.OptionGate, p.Marks[1].Gate)
	s.Build.Require = true
	_, err = f.Plan(sinktest.Graph(), s)
	assert.ErrorContains(t, err, "its tiling must run on the device and does not: option: ge.tiling_schedule_optimize is off (compile)")
}

// A problem for another machine than the plan's is a fault of whoever planned it.
func TestMachineOfAProblem(t *testing.T) {
	n := sinktest.Graph()
	n[0].Problem.Machine.Cores = 5
	f := compile(t, sink.UpdateForm)
	_, err := f.Plan(n, sinktest.Settings(sink.UpdateForm))
	assert.ErrorIs(t, err, status.ErrInternal)
	assert.ErrorIs(t, f.Add(planned(t, n, sinktest.Settings(sink.UpdateForm))), status.ErrInternal)
}
