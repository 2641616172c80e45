package context

import (
	stdctx "context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/move"
	"goatb/kernelgraph"
	"goatb/mempool"
	"goatb/runner"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling"
	"goatb/tiling/sink"
	"goatb/tilingcache"
)

// Context is the place where operations run. See the package comment for who
// may call it from where. It does not own its device.
type Context struct {
	id      uuid.UUID
	dev     device.Device
	cfg     Config
	checks  string
	log     *slog.Logger
	lower   kernelgraph.Env
	planner mempool.Planner
	pool    *runner.Pool
	count   runner.Counters
	env     runner.Env

	// host guards planning and moving, launch the execute streams.
	host, launch claim
	epoch        atomic.Uint64
	closed       atomic.Bool

	// mu guards what Close and Stats share with the owner's calls; left is
	// signalled when somebody leaves a closed context.
	mu         sync.Mutex
	left       *sync.Cond
	own        []device.Stream
	hostMem    device.Buffer
	deviceMem  device.Buffer
	freeHost   func(device.Buffer) error
	freeDev    func(device.Buffer) error
	workspaces []device.Buffer
}

// MaxStreams is the largest number of execute streams.
const MaxStreams = 1024

// New makes a context on a device. Without options it reads the environment,
// has one execute stream and checks natively. Errors: ErrInvalidParam for a nil
// device and for every bad setting, ErrOutOfHostMemory and
// ErrOutOfDeviceMemory when the rings cannot be reserved.
func New(dev device.Device, opts ...Option) (*Context, error) {
	if err := status.Given("new context", "dev", dev); err != nil {
		return nil, err
	}
	s, cfg, err := gather(opts, dev.Props().Chip)
	if err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, "new context", "", "")
	}
	c := &Context{id: s.id, dev: dev, cfg: cfg, checks: s.checks, log: s.logger, pool: runner.NewPool(cfg.RunnerPool)}
	c.left = sync.NewCond(&c.mu)
	if err := c.open(s); err != nil {
		return nil, errors.Join(status.Place(err, status.ErrDeviceFail, "new context", "", ""), c.Close())
	}
	return c, nil
}

func (c *Context) open(s *settings) error {
	filter, err := kernel.ParseFilter(s.filter)
	if err != nil {
		return err
	}
	c.lower = kernelgraph.Env{
		Machine: kernel.MachineOf(c.dev.Props()),
		Options: kernel.Options{ShuffleK: c.cfg.ShuffleK, QuantMinNeg127: c.cfg.QuantMinNeg127},
		Filter:  filter, Copy: move.Copy, Host: device.HostOf(c.dev),
	}
	if m := s.machine; m != nil {
		if m.Cores < 1 || m.L1 < 0 || m.L2 < 0 || m.L3 < 0 {
			return status.Errorf(status.ErrInvalidParam, "want a machine with at least one core and no negative cache sizes, got %+v", *m)
		}
		c.lower.Machine = *m
	}
	c.env = runner.Env{
		Device: c.dev, Machine: c.lower.Machine, Host: c.lower.Host, BlockSize: BlockSize, LocalOn: c.cfg.CacheType&1 != 0, LocalSlots: c.cfg.LocalSlots, SlotBytes: c.cfg.CacheSlotBytes,
		SyncKernel: c.cfg.SyncKernel, SyncRunner: c.cfg.SyncRunner, SyncOperation: c.cfg.SyncOperation, CompareTiling: c.cfg.CompareTiling,
		Overflow: s.overflow, Counters: &c.count,
	}
	if err := c.openSinking(s); err != nil {
		return err
	}
	if c.cfg.CacheType&2 != 0 {
		c.env.Global = s.global
		if c.env.Global == nil {
			if c.env.Global, err = tilingcache.NewGlobal(c.cfg.GlobalSlots); err != nil {
				return err
			}
		}
	}
	for range s.streams {
		st, err := c.dev.NewStream()
		if err != nil {
			return err
		}
		c.own = append(c.own, st)
	}
	c.env.Streams = c.own
	if err := c.openRings(s); err != nil {
		return err
	}
	if s.overflow != nil {
		if s.overflow.Flag, err = c.dev.Alloc(tensor.Int32.Size()); err != nil {
			return err
		}
	}
	return c.usePolicy(c.cfg.Policy)
}

// policySink is the policy that captures.
const policySink = "device-sink"

// openSinking prepares what device-sink captures with.
func (c *Context) openSinking(from *settings) error {
	s := &c.env.Sinking
	s.Log = from.tilingLog
	s.Warn = func(err error) { c.log.Warn("log of a tiling function", "err", err) }
	s.Option, s.Require = c.cfg.SinkOption, c.cfg.RequireSink
	s.Deadline = time.Duration(c.cfg.SinkDeadline) * time.Millisecond
	var err error
	if s.Form, err = sink.ParseForm(c.cfg.SinkForm); err != nil {
		return err
	}
	if s.Soc, err = sink.ProfileOf(c.cfg.SinkSoc); err != nil || from.compiled == nil {
		return err
	}
	if c.cfg.Policy != policySink {
		return status.Errorf(status.ErrInvalidParam, "compiled graphs want policy %s, got %s", policySink, c.cfg.Policy)
	}
	if why := c.env.Singly(); why != "" {
		return status.Errorf(status.ErrInvalidParam, "compiled graphs are replayed as a whole, and %s: take one of both away", why)
	}
	s.Compiled = from.compiled
	return s.Compiled.Fits(s.Form, &s.Soc, &c.lower.Machine)
}

// openRings reserves both rings: address space, resident only when touched.
func (c *Context) openRings(s *settings) error {
	hostAlloc, devAlloc := c.dev.AllocHost, c.dev.Reserve
	c.freeHost, c.freeDev = c.dev.Free, c.dev.Free
	if s.hostMem.alloc != nil {
		hostAlloc, c.freeHost = s.hostMem.alloc, s.hostMem.free
	}
	if s.deviceMem.alloc != nil {
		devAlloc, c.freeDev = s.deviceMem.alloc, s.deviceMem.free
	}
	var err error
	if c.hostMem, err = hostAlloc(int64(c.cfg.HostBlocks) * BlockSize); err != nil {
		return status.Place(err, status.ErrOutOfHostMemory, "", "", "host tiling ring")
	}
	if c.deviceMem, err = devAlloc(int64(c.cfg.DeviceBlocks) * BlockSize); err != nil {
		return status.Place(err, status.ErrOutOfDeviceMemory, "", "", "device tiling ring")
	}
	for _, m := range [...]device.Buffer{c.hostMem, c.deviceMem} {
		if !m.Aligned(mempool.SlotAlign) {
			return status.Errorf(status.ErrInvalidParam, "tiling ring: want memory at a multiple of %d bytes", mempool.SlotAlign)
		}
	}
	if c.env.HostRing, err = mempool.NewRing(c.dev, c.hostMem, c.cfg.HostBlocks, BlockSize); err != nil {
		return err
	}
	c.env.DeviceRing, err = mempool.NewRing(c.dev, c.deviceMem, c.cfg.DeviceBlocks, BlockSize)
	return err
}

// usePolicy makes what the policy needs and switches to it.
func (c *Context) usePolicy(name string) error {
	p, err := tiling.ByName(name)
	if err != nil {
		return status.Errorf(status.ErrInvalidParam, "%w", err)
	}
	if p.UsesCopyStream() && c.env.Copy == nil {
		s, err := c.dev.NewStream()
		if err != nil {
			return err
		}
		events, err := tiling.NewEventRing(c.dev, tiling.CopyEvents)
		if err != nil {
			return errors.Join(err, s.Close())
		}
		c.mu.Lock()
		c.env.Copy, c.env.Events = s, events
		c.mu.Unlock()
	}
	c.env.Policy = p
	return nil
}

// SetPolicy switches the tiling policy for the launches to come. It is
// idempotent; on an error the old policy stays.
func (c *Context) SetPolicy(name string) error {
	if err := c.Enter(HostSide); err != nil {
		return err
	}
	defer c.Leave(HostSide)
	return status.Place(c.usePolicy(name), status.ErrDeviceFail, "context", "set policy", "")
}

// Policy returns the name of the tiling policy, "" of a nil context.
func (c *Context) Policy() string {
	if c == nil || c.env.Policy == nil {
		return ""
	}
	return c.env.Policy.Name()
}

// Captures reports whether the tiling policy captures launches and replays them;
// a nil context captures nothing.
func (c *Context) Captures() bool {
	return c != nil && c.env.Policy != nil && c.env.Policy.Captures()
}

// SetStreams replaces the execute streams by the caller's, who keeps them open
// as long as the context uses them. Operations plan anew at their next Setup.
// Errors: ErrInvalidParam for none and for too many, ErrInvalidStream for a stream
// that is nil or zero, closed, or of another device.
func (c *Context) SetStreams(streams ...device.Stream) error {
	if len(streams) == 0 || len(streams) > MaxStreams {
		return status.Errorf(status.ErrInvalidParam, "set streams: want 1 to %d streams, got %d", MaxStreams, len(streams))
	}
	for i, s := range streams {
		if status.IsNil(s) {
			return status.Errorf(status.ErrInvalidStream, "set streams: stream %d is nil", i)
		}
	}
	if err := c.Enter(HostSide | LaunchSide); err != nil {
		return err
	}
	defer c.Leave(HostSide | LaunchSide)
	for i, s := range streams {
		b, ok := s.(device.BoundStream)
		if !ok {
			continue
		}
		if err := b.Usable(c.dev.Props()); err != nil {
			return status.Place(err, status.ErrInvalidStream, "context", "set streams", fmt.Sprintf("stream %d", i))
		}
	}
	c.mu.Lock()
	c.env.Streams = append([]device.Stream(nil), streams...)
	c.mu.Unlock()
	c.epoch.Add(1)
	return nil
}

// Streams returns the number of execute streams, 0 of a nil context.
func (c *Context) Streams() int {
	if c == nil {
		return 0
	}
	return len(c.env.Streams)
}

// Stream returns execute stream i, or ErrInvalidStream.
func (c *Context) Stream(i int) (device.Stream, error) {
	if err := c.unusable(); err != nil {
		return nil, err
	}
	if i < 0 || i >= len(c.env.Streams) {
		return nil, c.NoStream("stream id", i)
	}
	return c.env.Streams[i], nil
}

// ID names the context in logs and traces; it is zero of a nil context.
func (c *Context) ID() uuid.UUID {
	if c == nil {
		return uuid.UUID{}
	}
	return c.id
}

// Device returns the device, nil of a nil context.
func (c *Context) Device() device.Device {
	if c == nil {
		return nil
	}
	return c.dev
}

// Config returns the configuration in force, a zero one of a nil context.
func (c *Context) Config() Config {
	if c == nil {
		return Config{}
	}
	cfg := c.cfg
	cfg.Policy = c.Policy()
	return cfg
}

// Checks returns the profile of checks: native or 910b, "" of a nil context.
func (c *Context) Checks() string {
	if c == nil {
		return ""
	}
	return c.checks
}

// Logger returns where the context logs to; that of a nil context discards.
func (c *Context) Logger() *slog.Logger {
	if c == nil || c.log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.log
}

// Synchronize waits until everything enqueued on the context's streams is done,
// or ctx is, and returns the first error of the work, which names operation and
// node. The context is usable after it. When ctx ends first its error is
// returned, the work goes on, and errors of the work are left for the next
// Synchronize.
func (c *Context) Synchronize(ctx stdctx.Context) error {
	if err := c.unusable(); err != nil {
		return err
	}
	if err := status.Given("synchronize", "ctx", ctx); err != nil {
		return err
	}
	c.mu.Lock()
	var few [8]device.Stream
	streams := append(few[:0], c.env.Streams...)
	if c.env.Copy != nil {
		streams = append(streams, c.env.Copy)
	}
	c.mu.Unlock()
	var first error
	for _, s := range streams {
		err := s.Synchronize(ctx)
		if err != nil && ctx.Err() != nil && errors.Is(err, stdctx.Cause(ctx)) {
			if first == nil {
				first = err
			}
			break
		}
		if first == nil {
			first = err
		}
	}
	c.env.Sinking.Retired.Sweep()
	return first
}

// unusable says why a context cannot be used: it is nil, was not made by New or
// is closed. It is nil of one that can.
func (c *Context) unusable() error {
	switch {
	case c == nil || c.dev == nil:
		return status.Unmade(status.ErrInvalidContextAddr, "Context", c == nil, "make one with NewContext")
	case c.closed.Load():
		return status.Errorf(status.ErrInvalidContextAddr, "the context is closed")
	}
	return nil
}

// NoStream is the error of a stream id, called by what, that the context does not
// have. It is for the operation package.
func (c *Context) NoStream(what string, id int) error {
	have := c.Streams()
	if id < 0 || id >= MaxStreams {
		return status.Errorf(status.ErrInvalidStream, "%s %d: want 0 to %d", what, id, have-1)
	}
	return status.Errorf(status.ErrInvalidStream, "%s %d: the context's streams are 0 to %d: use one of them, or make the context with WithStreams(%d)", what, id, have-1, id+1)
}
