package cpu

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goatb/device"
	"goatb/internal/workpool"
	"goatb/status"
)

// Device is the embedded device. It implements device.Device.
type Device struct {
	cfg     config
	props   device.Props
	opened  time.Time
	spin    workpool.Spin
	pool    *workpool.Pool // nil on an inline device
	mem     memory
	waiters waiterList

	mu      sync.Mutex // guards streams, models, next and err
	streams []*Stream
	models  map[*Model]struct{}
	next    int
	err     error

	closing  atomic.Bool
	closed   chan struct{}
	nudges   chan struct{} // tells Close that a stream ended or came to a wait
	releases atomic.Uint64 // gates opened so far
	frees    atomic.Uint64 // allocations freed so far
}

// now is the time since the device was opened: one look at a clock, where time.Now
// takes two.
func (d *Device) now() time.Duration { return time.Since(d.opened) }

// New opens the device. Errors: ErrInvalidParam for an option out of range.
func New(opts ...Option) (*Device, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	d := &Device{cfg: cfg, opened: time.Now(), spin: workpool.NewSpin(cfg.spin), closed: make(chan struct{}), nudges: make(chan struct{}, 1)}
	d.mem = memory{regions: newRegions(), live: map[*device.Allocation]region{}, limit: cfg.limit}
	d.props = device.Props{Kind: "cpu", Cores: cfg.workers, QueueDepth: cfg.depth, Addressable: true}
	d.props.L1, d.props.L2, d.props.L3 = cacheSizes(os.DirFS("/"))
	d.props.Name = fmt.Sprintf("cpu (%d workers)", cfg.workers)
	if cfg.inline {
		d.props.Name = "cpu (inline)"
		return d, nil
	}
	d.pool = workpool.New(cfg.workers, d.spin)
	return d, nil
}

// Host returns the account of WithHost, nil without it.
func (d *Device) Host() device.Host {
	if d.exists() != nil {
		return nil
	}
	return d.cfg.host
}

// exists refuses a device that New has not made.
func (d *Device) exists() error {
	if d != nil && d.closed != nil {
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

// Alloc reserves device memory.
func (d *Device) Alloc(size int64) (device.Buffer, error) {
	return d.alloc(device.DeviceSpace, size, true)
}

// Reserve reserves device memory in small pages.
func (d *Device) Reserve(size int64) (device.Buffer, error) {
	return d.alloc(device.DeviceSpace, size, false)
}

// AllocHost reserves host memory.
func (d *Device) AllocHost(size int64) (device.Buffer, error) {
	return d.alloc(device.HostSpace, size, false)
}

func (d *Device) alloc(space device.Space, size int64, huge bool) (device.Buffer, error) {
	if err := d.exists(); err != nil {
		return device.Buffer{}, err
	}
	if d.closing.Load() {
		return device.Buffer{}, errClosed()
	}
	return d.mem.alloc(space, size, huge)
}

// Free gives back an allocation once the work enqueued so far is done.
func (d *Device) Free(b device.Buffer) error {
	if err := d.exists(); err != nil {
		return err
	}
	r, err := d.mem.release(b)
	if err != nil {
		return err
	}
	d.frees.Add(1)
	old := &retired{mem: &d.mem, region: r, space: b.Space(), size: b.Size()}
	old.pending.Store(1)
	d.mu.Lock()
	for _, s := range d.streams {
		// A launch that found the memory live holds put until it is enqueued.
		s.put.Lock()
		at := s.tail.Load()
		s.put.Unlock()
		old.pending.Add(1)
		if !s.watch(watch{at: at, free: old}) {
			old.pending.Add(-1)
		}
	}
	d.mu.Unlock()
	return old.done()
}

// NewStream makes a stream.
func (d *Device) NewStream() (device.Stream, error) {
	if err := d.exists(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing.Load() {
		return nil, errClosed()
	}
	s := newStream(d, d.next)
	d.next++
	d.streams = append(d.streams, s)
	if !d.cfg.inline {
		go s.loop()
	}
	return s, nil
}

// NewEvent makes an event.
func (d *Device) NewEvent() (device.Event, error) {
	if err := d.exists(); err != nil {
		return nil, err
	}
	if d.closing.Load() {
		return nil, errClosed()
	}
	return &Event{dev: d}, nil
}

// Close waits for enqueued work, aborts waits that nothing can satisfy any
// more, and frees everything. It returns the errors that nobody took from the
// streams.
func (d *Device) Close() error {
	if d.exists() != nil {
		return nil
	}
	d.mu.Lock()
	if d.closing.Swap(true) {
		d.mu.Unlock()
		<-d.closed
		return nil
	}
	streams := slices.Clone(d.streams)
	d.mu.Unlock()
	defer close(d.closed)
	for _, s := range streams {
		s.stop()
	}
	d.finishWork(streams)
	var errs []error
	for _, s := range streams {
		errs = append(errs, s.Close())
	}
	d.unloadModels()
	if d.pool != nil {
		d.pool.Close()
	}
	d.mu.Lock()
	errs = append(errs, d.err)
	d.mu.Unlock()
	return errors.Join(append(errs, d.mem.close())...)
}

// finishWork returns when all streams have ended. No record can be enqueued any
// more, so when every stream that is left stands at a wait, one wait is aborted:
// first one without a record to come, else one of a cycle.
func (d *Device) finishWork(streams []*Stream) {
	for {
		releases := d.releases.Load()
		open, held := 0, []*Stream(nil)
		for _, s := range streams {
			if s.over.Load() {
				continue
			}
			open++
			if s.gate.event.Load() != nil {
				held = append(held, s)
			}
		}
		if open == 0 {
			return
		}
		if open > len(held) || releases != d.releases.Load() {
			<-d.nudges
			continue
		}
		d.abortOne(held)
	}
}

// abortOne ends the wait of one of the streams with an error.
func (d *Device) abortOne(held []*Stream) {
	for _, hopeless := range [...]bool{true, false} {
		for _, s := range held {
			e := s.gate.event.Load()
			if e == nil {
				return
			}
			mine := func(w streamWait) bool { return w.s == s && (!hopeless || w.gen > e.recorded) }
			if e.leave(mine, errAborted()) != nil {
				s.resume()
				return
			}
		}
	}
}

// nudge tells a Close that is going on to look at the streams again.
func (d *Device) nudge() {
	if d.closing.Load() {
		select {
		case d.nudges <- struct{}{}:
		default:
		}
	}
}

// forgetStream takes an ended stream off the books.
func (d *Device) forgetStream(s *Stream) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.streams = slices.DeleteFunc(d.streams, func(o *Stream) bool { return o == s })
}

// noteError keeps an error that has no caller, for Close.
func (d *Device) noteError(err error) {
	if err == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = errors.Join(d.err, err)
}

func errClosed() error {
	return status.Errorf(status.ErrDeviceFail, "want an open device, got a closed one")
}

func errAborted() error {
	return status.Errorf(status.ErrDeviceFail, "wait for an event aborted: the device was closed and no record can come")
}

var _ device.Device = (*Device)(nil)
