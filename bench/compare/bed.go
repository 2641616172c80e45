package compare

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/model/decoder"
)

// Steps that are not measured: the first plans, some more fill caches, rings and
// the memory of the simulated cache. On the simulated device there are more than
// tilings in a cache, so that a run that starts again finds none of its own.
const (
	warmSteps    = 2
	simWarmSteps = 6
)

// bed is a model that is ready to run under one policy.
type bed struct {
	cfg  *Config
	dev  device.Device
	sim  *sim.Device // nil on the CPU device
	c    *atb.Context
	s    *decoder.Session
	rec  *trace.Recorder
	now  func() time.Time
	warm int
}

// open makes the device, the context and the model. The device has the costs p,
// which the CPU device does not look at.
func open(cfg *Config, policy string, p *profile.Profile) (*bed, error) {
	b := &bed{cfg: cfg, rec: trace.New(policy, 0), warm: warmSteps}
	if err := b.openAll(policy, p); err != nil {
		return nil, errors.Join(fmt.Errorf("policy %s: %w", policy, err), b.close())
	}
	return b, nil
}

func (b *bed) openAll(policy string, p *profile.Profile) error {
	if err := b.openDevice(p); err != nil {
		return err
	}
	b.now = device.Clock(device.HostOf(b.dev))
	var err error
	if b.c, err = atb.NewContext(b.dev, b.cfg.contextOptions(policy)...); err != nil {
		return err
	}
	load := b.cfg.Load
	load.Steps += b.warm
	if b.s, err = decoder.NewSession(b.c, b.cfg.Shape, load, b.cfg.DType); err != nil {
		return err
	}
	b.s.Observe = b.observe
	return nil
}

func (b *bed) openDevice(p *profile.Profile) error {
	var err error
	if b.cfg.Profile != nil {
		b.warm = simWarmSteps
		b.sim, err = sim.New(p, sim.WithNumerics(b.cfg.Numerics), sim.WithRecorder(b.rec))
		if err == nil {
			b.dev = b.sim
		}
		return err
	}
	opts := []cpu.Option{cpu.WithObserver(b.rec.Task), cpu.WithHost(trace.NewAccount(b.rec))}
	if b.cfg.Workers > 0 {
		opts = append(opts, cpu.WithWorkers(b.cfg.Workers))
	}
	d, err := cpu.New(opts...)
	if err == nil {
		b.dev = d
	}
	return err
}

// observe writes the spans of operations, and counters, to the timeline.
func (b *bed) observe(s decoder.Span) {
	b.rec.Host(trace.Span{Category: s.Stage, Name: s.Op, Start: s.Start, End: s.End})
	if !b.cfg.Timeline || s.Stage == "setup" {
		return
	}
	st := b.c.Stats()
	for _, x := range [...]struct {
		name  string
		value int64
	}{{"host ring blocks in use", int64(st.HostRing.InUse)}, {"device ring blocks in use", int64(st.DeviceRing.InUse)}, {"workspace bytes", st.WorkspaceBytes}} {
		b.rec.Count(trace.Sample{Counter: x.name, At: s.End, Value: x.value})
	}
}

// measured is what one step took.
type measured struct {
	step, host, device int64
	idle               Idle
}

// run warms up and measures so many steps.
func (b *bed) run(ctx context.Context, steps int) ([]measured, atb.Stats, error) {
	b.s.Rewind()
	for range b.warm {
		if err := b.step(ctx); err != nil {
			return nil, atb.Stats{}, err
		}
	}
	b.rec.Reset()
	before := b.c.Stats()
	list := make([]measured, 0, steps)
	for range steps {
		if !b.cfg.Timeline {
			b.rec.Reset()
		}
		m, err := b.measure(ctx)
		if err != nil {
			return nil, atb.Stats{}, err
		}
		list = append(list, m)
	}
	return list, before, nil
}

// step runs one step. A simulated device is done before ctx could end.
func (b *bed) step(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return b.s.Step(ctx)
}

// measure runs and measures one step.
func (b *bed) measure(ctx context.Context) (measured, error) {
	mark, start := b.rec.Mark(), b.now()
	err := b.step(ctx)
	end := b.now()
	if err != nil {
		return measured{}, err
	}
	tasks, spans := b.rec.Since(mark)
	s := newStep(tasks, spans, start, end)
	m := measured{step: end.Sub(start).Nanoseconds(), host: s.hostBusy()}
	m.device, m.idle = s.busy()
	return m, nil
}

// close gives everything back.
func (b *bed) close() error {
	var errs []error
	if b.s != nil {
		errs = append(errs, b.s.Close())
	}
	if b.c != nil {
		errs = append(errs, b.c.Close())
	}
	if b.dev != nil {
		errs = append(errs, b.dev.Close())
	}
	return errors.Join(errs...)
}
