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

// stepEntries bounds what one step may do.
const stepEntries = 1 << 22

// Session is a model that is ready to run, and to be measured, under one policy.
type Session struct {
	cfg  *Config
	dev  device.Device
	sim  *sim.Device // nil on the CPU device
	c    *atb.Context
	s    *decoder.Session
	rec  *trace.Recorder // what the running step did
	kept *Timeline       // nil where Config.Timeline does not ask for it
	now  func() time.Time
	warm int
	left int // steps until the lengths start again
}

// Step is what one step took, in nanoseconds.
type Step struct {
	// Ns is the whole step, from the first Setup to the end of the device's work.
	Ns int64
	// HostBusyNs is the time in which the host worked, DeviceBusyNs that in which
	// a kernel ran.
	HostBusyNs, DeviceBusyNs int64
	// Idle is Ns less DeviceBusyNs by cause.
	Idle Idle
}

// Open makes a device, a context and a model, and runs the steps that are not
// measured. Errors: a configuration that cannot be, ctx's, and those of the
// operations and the device.
func Open(ctx context.Context, cfg Config, policy string) (*Session, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	b, err := open(&cfg, policy, cfg.Profile)
	if err != nil {
		return nil, err
	}
	if err := b.restart(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Step runs and measures one step. Lengths grow by one from step to step and start
// again after Config.Load.Steps.
func (b *Session) Step(ctx context.Context) (Step, error) {
	if b.left == 0 {
		if err := b.restart(ctx); err != nil {
			return Step{}, err
		}
	}
	return b.measure(ctx)
}

// Stats returns the context's counters.
func (b *Session) Stats() atb.Stats { return b.c.Stats() }

// open makes a session whose device has the costs p, which the CPU device does not
// look at.
func open(cfg *Config, policy string, p *profile.Profile) (*Session, error) {
	b := &Session{cfg: cfg, rec: trace.New(policy, stepEntries), warm: warmSteps}
	if cfg.Timeline {
		b.kept = &Timeline{Recorder: trace.New(policy, 0)}
	}
	if err := b.openAll(policy, p); err != nil {
		return nil, errors.Join(fmt.Errorf("policy %s: %w", policy, err), b.Close())
	}
	return b, nil
}

func (b *Session) openAll(policy string, p *profile.Profile) error {
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

func (b *Session) openDevice(p *profile.Profile) error {
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
func (b *Session) observe(s decoder.Span) {
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

// restart runs the steps that come before those measured.
func (b *Session) restart(ctx context.Context) error {
	b.s.Rewind()
	for range b.warm {
		if err := b.step(ctx); err != nil {
			return err
		}
	}
	b.left = b.cfg.Load.Steps
	return nil
}

// step runs one step. A simulated device is done before ctx could end.
func (b *Session) step(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return b.s.Step(ctx)
}

func (b *Session) measure(ctx context.Context) (Step, error) {
	b.rec.Reset()
	start := b.now()
	err := b.step(ctx)
	end := b.now()
	if err != nil {
		return Step{}, err
	}
	b.left--
	if n := b.rec.Dropped(); n > 0 {
		return Step{}, fmt.Errorf("compare: a step has %d entries more than the %d that are measured", n, stepEntries)
	}
	if b.kept != nil {
		b.kept.add(b.rec, start, end)
	}
	s := newTimeline(b.rec.Tasks(), b.rec.Spans(), start, end)
	m := Step{Ns: end.Sub(start).Nanoseconds(), HostBusyNs: s.hostBusy()}
	m.DeviceBusyNs, m.Idle = s.busy()
	return m, nil
}

// Close gives everything back.
func (b *Session) Close() error {
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
