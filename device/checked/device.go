package checked

import (
	"errors"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"goatb/device"
	"goatb/status"
)

// Device is the layer. It implements device.Device.
type Device struct {
	inner device.Device
	cfg   config
	seed  maphash.Seed

	// guardMu is held while guards are read or memory is given back, so that
	// no guard is read that is gone. It comes before mu.
	guardMu sync.Mutex

	mu         sync.Mutex // guards everything below
	live       map[*device.Allocation]*allocation
	sorted     []*allocation // those with addresses, by address
	freed      map[*device.Allocation]site
	freedOrder []*device.Allocation
	foreign    history // accesses to memory of others
	models     []*model
	host       clock // what the host knows to be done; replaced, never changed
	reads      []*hostRead
	streams    []*Stream // not closed
	events     []*Event  // not closed
	loaded     []*Model  // not unloaded
	closed     atomic.Bool
}

// New puts the layer around a device; around nil it is as a zero Device, whose
// calls are errors. Memory, streams and events of d itself
// are foreign to the layer.
func New(d device.Device, opts ...Option) *Device {
	if status.IsNil(d) {
		d = nil
	}
	cfg := config{grace: DefaultGrace}
	for _, o := range opts {
		if o != nil {
			o(&cfg)
		}
	}
	return &Device{
		inner: d, cfg: cfg, seed: maphash.MakeSeed(),
		live: map[*device.Allocation]*allocation{}, freed: map[*device.Allocation]site{},
	}
}

// exists refuses a device that New has not made of another.
func (d *Device) exists() error {
	if d != nil && d.inner != nil {
		return nil
	}
	return status.Unmade(status.ErrInvalidParam, "Device", d == nil, "make one with New, of a device that is not nil")
}

// Props describes the inner device; those of a nil or zero Device are zero.
func (d *Device) Props() *device.Props {
	if d.exists() != nil {
		return &device.Props{}
	}
	return d.inner.Props()
}

// Host returns the account of the inner device's host.
func (d *Device) Host() device.Host {
	if d.exists() != nil {
		return nil
	}
	return device.HostOf(d.inner)
}

// Alloc reserves device memory with guards around it.
func (d *Device) Alloc(size int64) (device.Buffer, error) {
	if err := d.exists(); err != nil {
		return device.Buffer{}, err
	}
	return d.alloc(device.DeviceSpace, size, d.inner.Alloc, here())
}

// Reserve reserves device memory with guards around it.
func (d *Device) Reserve(size int64) (device.Buffer, error) {
	if err := d.exists(); err != nil {
		return device.Buffer{}, err
	}
	return d.alloc(device.DeviceSpace, size, d.inner.Reserve, here())
}

// AllocHost reserves host memory with guards around it.
func (d *Device) AllocHost(size int64) (device.Buffer, error) {
	if err := d.exists(); err != nil {
		return device.Buffer{}, err
	}
	return d.alloc(device.HostSpace, size, d.inner.AllocHost, here())
}

// Free gives back an allocation. A written guard is an OutOfBounds finding.
func (d *Device) Free(b device.Buffer) error {
	if err := d.exists(); err != nil {
		return err
	}
	return d.free(b, here())
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
	m := &model{id: len(d.models)}
	d.models = append(d.models, m)
	s := &Stream{dev: d, inner: inner, model: m, made: here()}
	d.streams = append(d.streams, s)
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
	e := &Event{dev: d, inner: inner, made: here()}
	d.events = append(d.events, e)
	return e, nil
}

// Close closes the inner device and returns the findings that nobody took and,
// if asked for, the leaks.
func (d *Device) Close() error {
	if d.exists() != nil {
		return nil
	}
	if d.closed.Swap(true) {
		return d.inner.Close()
	}
	var found []error
	for _, f := range d.checkGuards() {
		found = append(found, f.failure(status.ErrRuntimeFail, nil))
	}
	d.guardMu.Lock()
	d.mu.Lock()
	if d.cfg.leaks {
		found = append(found, d.leaks()...)
	}
	live := d.live
	d.live, d.sorted = map[*device.Allocation]*allocation{}, nil
	d.mu.Unlock()
	d.guardMu.Unlock()

	err := d.inner.Close()
	for a := range live {
		a.Release()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.models {
		found = append(found, m.found...)
		m.found = nil
	}
	return join(append([]error{err}, found...))
}

// leaks lists what is still open; mu is held.
func (d *Device) leaks() []error {
	var found []error
	add := func(what string, made *site) {
		f := &Finding{Kind: Leak, Text: what + " made at" + made.stack()}
		found = append(found, f.failure(status.ErrDeviceFail, nil))
	}
	own := make([]*allocation, 0, len(d.live))
	for _, a := range d.live {
		own = append(own, a)
	}
	slices.SortFunc(own, func(a, b *allocation) int { return strings.Compare(a.made.stack(), b.made.stack()) })
	for _, a := range own {
		add("allocation of "+bytesOf(a.outer.Size())+" was not freed,", &a.made)
	}
	for _, s := range d.streams {
		add("stream was not closed,", &s.made)
	}
	for _, e := range d.events {
		add("event was not closed,", &e.made)
	}
	for _, m := range d.loaded {
		add("model "+m.list.Name+" was not unloaded,", &m.made.made)
	}
	return found
}

// join returns the errors that are not nil as one, a single one as itself.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

var _ device.Device = (*Device)(nil)
