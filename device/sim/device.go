package sim

import (
	"sync"
	"time"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/status"
)

// Device is a simulated accelerator. It implements device.Device.
type Device struct {
	inner    *cpu.Device
	numerics bool
	rec      *trace.Recorder // nil without
	deadline time.Duration
	props    device.Props

	// work is held while the inner device works and the work is booked, so that
	// both see one order of calls. It comes before mu.
	work sync.Mutex

	mu      sync.Mutex // guards everything below
	booked  *sync.Cond // signalled when something was booked or closed
	costs   profile.Costs
	host    hostClock
	engine  engine
	cache   cache
	mem     memory
	streams int
	closed  bool
	spare   []*task
}

// Option changes how New makes a device.
type Option func(*Device)

// WithNumerics switches the computing of values; the default is on.
func WithNumerics(on bool) Option { return func(d *Device) { d.numerics = on } }

// WithRecorder writes a timeline of tasks and of the host's work.
func WithRecorder(r *trace.Recorder) Option { return func(d *Device) { d.rec = r } }

// WithDeadline bounds preprocess tasks that have no deadline of their own, in real
// time.
func WithDeadline(d time.Duration) Option { return func(x *Device) { x.deadline = d } }

// New opens a device with the costs of a profile.
func New(p *profile.Profile, opts ...Option) (*Device, error) {
	if err := p.Check(); err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, "simulated device", "", "")
	}
	c := p.Costs()
	d := &Device{numerics: true, costs: c, deadline: cpu.DefaultDeadline}
	for _, o := range opts {
		if o != nil {
			o(d)
		}
	}
	var err error
	d.inner, err = cpu.New(cpu.WithInline(), cpu.WithWorkers(int(c.Cores)), cpu.WithQueueDepth(int(c.QueueDepth)),
		cpu.WithPrefetch(int(c.Prefetch)), cpu.WithTaskUpdate(c.TaskUpdate > 0), cpu.WithDeadline(d.deadline))
	if err != nil {
		return nil, err
	}
	d.booked = sync.NewCond(&d.mu)
	d.mem.live = map[*device.Allocation]bool{}
	d.engine.open(d)
	d.props = device.Props{
		Name: "sim " + p.Name, Kind: "sim", Cores: int(c.Cores),
		L1: int64(c.CoreBuffer), L2: int64(c.CoreL1), L3: int64(c.L2Size),
		QueueDepth: int(c.QueueDepth), Addressable: d.numerics, Accelerator: true, Chip: p.Soc,
	}
	return d, nil
}

// exists refuses a device that New has not made.
func (d *Device) exists() error {
	if d != nil && d.inner != nil {
		return nil
	}
	return status.Unmade(status.ErrInvalidParam, "Device", d == nil, "open one with New")
}

// Props describes the device; those of a nil or zero Device are zero.
func (d *Device) Props() *device.Props {
	if d == nil {
		return &device.Props{}
	}
	return &d.props
}

// SetProfile replaces the costs. What Props tell stays: the number of cores, the
// sizes of buffers and the depth of the launch queue. Errors: ErrInvalidParam for
// nil, while work is under way, and where those differ (Fits).
func (d *Device) SetProfile(p *profile.Profile) error {
	if err := d.exists(); err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return status.Place(err, status.ErrInvalidParam, "simulated device", "", "")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := p.Costs()
	switch {
	case d.engine.tasks > 0:
		return status.Errorf(status.ErrInvalidParam, "simulated device: want no work under way while costs change, got %d tasks", d.engine.tasks)
	case !d.fits(&c):
		return status.Errorf(status.ErrInvalidParam, "simulated device: want a profile with the cores, buffers and queue depth of the one that it was opened with")
	}
	d.costs = c
	return nil
}

// Fits reports whether SetProfile can take a profile over.
func (d *Device) Fits(p *profile.Profile) bool {
	if d.exists() != nil || p.Check() != nil {
		return false
	}
	c := p.Costs()
	return d.fits(&c)
}

func (d *Device) fits(c *profile.Costs) bool {
	p := &d.props
	return int(c.Cores) == p.Cores && int(c.QueueDepth) == p.QueueDepth &&
		int64(c.CoreBuffer) == p.L1 && int64(c.CoreL1) == p.L2 && int64(c.L2Size) == p.L3
}

// NewStream makes a stream.
func (d *Device) NewStream() (device.Stream, error) {
	if err := d.exists(); err != nil {
		return nil, err
	}
	inner, err := d.inner.NewStream()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := &Stream{dev: d, inner: inner, id: d.streams}
	d.streams++
	return s, nil
}

// NewEvent makes an event.
func (d *Device) NewEvent() (device.Event, error) {
	if err := d.exists(); err != nil {
		return nil, err
	}
	inner, err := d.inner.NewEvent()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.charge("event", "new event", d.costs.EventHost)
	return &Event{dev: d, inner: inner}, nil
}

// Close waits for enqueued work, aborts waits that nothing can satisfy any more,
// and frees everything.
func (d *Device) Close() error {
	if d.exists() != nil {
		return nil
	}
	d.mu.Lock()
	d.closed = true
	d.booked.Broadcast()
	d.mu.Unlock()
	err := d.inner.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem.close()
	return err
}

var _ device.Device = (*Device)(nil)
