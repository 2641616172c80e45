package compare_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/model/decoder"
	"goatb/tensor"
)

// plant is a simulated device with a model whose step is captured as a task list,
// tilings and all: what a static graph without any tiling at run time takes.
type plant struct {
	*testing.T
	dev  *sim.Device
	s    device.Stream
	list *device.TaskList
}

func noEnv(string) (string, bool) { return "", false }

// capture captures the second step of a model, when every plan is made.
func capture(t *testing.T, p *profile.Profile, s decoder.Shape, l decoder.Load) *plant {
	t.Helper()
	dev, err := sim.New(p, sim.WithNumerics(false))
	require.NoError(t, err)
	c, err := atb.NewContext(dev, atb.WithEnv(noEnv))
	require.NoError(t, err)
	l.Steps = 2
	x, err := decoder.NewSession(c, s, l, tensor.Float16)
	require.NoError(t, err)
	require.NoError(t, x.Step(t.Context()))
	limits, err := device.LimitsOf(dev)
	require.NoError(t, err)
	record := device.NewCapture(s.Name, limits)
	require.NoError(t, c.SetStreams(record.Stream("main")))
	require.NoError(t, x.Enqueue())
	list, err := record.Finish()
	require.NoError(t, err)
	out := &plant{T: t, dev: dev, list: list}
	out.s, err = dev.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, x.Close())
		require.NoError(t, c.Close())
		require.NoError(t, dev.Close())
	})
	return out
}

// time returns how long f takes on the host's clock, up to the end of the device's
// work.
func (p *plant) time(f func()) time.Duration {
	p.Helper()
	start := p.dev.Host().Now()
	f()
	require.NoError(p, p.s.Synchronize(p.Context()))
	return p.dev.Host().Now().Sub(start)
}

// replayed returns the time of one replay of a list, the second.
func (p *plant) replayed(l *device.TaskList) time.Duration {
	p.Helper()
	m, err := p.dev.Load(l)
	require.NoError(p, err)
	defer func() { require.NoError(p, m.Unload()) }()
	replay := func() { require.NoError(p, m.Replay(p.s, nil)) }
	p.time(replay)
	return p.time(replay)
}

// static returns the time of the captured step.
func (p *plant) static() time.Duration { return p.replayed(p.list) }

// class tells the kind of a task of the captured list, and whether it is a kernel.
func class(t *device.Task) (device.Class, bool) {
	if t.Kernel == nil {
		return 0, false
	}
	return t.Kernel.Program.Class, true
}

// tiledOnce is the captured list with one tiling of attention on the AI CPU, whose
// results all layers share: the first attention waits for it.
func (p *plant) tiledOnce() *device.TaskList {
	l := &device.TaskList{Name: "tiled once", Streams: []string{"main"}}
	lane, e, waited := l.Bind("tiling"), l.NewEvent(), false
	for _, t := range p.list.Tasks {
		if c, ok := class(&t); ok && c == device.Mix && !waited {
			waited = true
			l.Add(device.Task{Kind: device.PreprocessTask, Stream: lane, Label: t.Label, Preprocess: &device.Preprocess{
				Engine: device.AICPU, Function: &device.Function{Name: "tile", Run: func(*device.CPUArgs) error { return nil }},
			}})
			l.Add(device.Task{Kind: device.EventRecordTask, Stream: lane, Event: e})
			l.Add(device.Task{Kind: device.EventWaitTask, Event: e})
		}
		l.Add(t)
	}
	return l
}

// hostTiled returns the time of a step that is captured but for attention, whose
// tilings the host computes: a replay of what lies between, a tiling and a launch
// for each layer. It also returns the host's time for a layer.
func (p *plant) hostTiled() (step, layer time.Duration) {
	p.Helper()
	var models []device.Model
	var attentions []device.Task
	part := &device.TaskList{Name: "part", Streams: []string{"main"}}
	load := func() {
		m, err := p.dev.Load(part)
		require.NoError(p, err)
		models = append(models, m)
		part = &device.TaskList{Name: "part", Streams: []string{"main"}}
	}
	for _, t := range p.list.Tasks {
		if c, ok := class(&t); ok && c == device.Mix {
			load()
			attentions = append(attentions, t)
			continue
		}
		part.Add(t)
	}
	load()
	host := p.dev.Host()
	run := func() {
		for i, m := range models {
			require.NoError(p, m.Replay(p.s, nil))
			if i == len(attentions) {
				break
			}
			k := attentions[i].Kernel
			host.Begin(device.TilingWork, k.Program)
			host.End(device.TilingWork)
			host.Begin(device.LaunchWork, k.Program)
			bufs := make([]device.Buffer, len(k.Operands))
			for j := range bufs {
				bufs[j] = k.Operands[j].Buffer
			}
			require.NoError(p, p.s.Launch(&device.Launch{Program: k.Program, Blocks: k.Blocks, Key: k.Key, Buffers: bufs, Inputs: k.Inputs, Inline: k.Inline}))
			host.End(device.LaunchWork)
		}
	}
	p.time(run)
	before := p.dev.HostBusy()
	step = p.time(run)
	layer = (p.dev.HostBusy() - before) / time.Duration(len(attentions))
	for _, m := range models {
		require.NoError(p, m.Unload())
	}
	return step, layer
}
