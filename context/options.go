package context

import (
	"log/slog"
	"os"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/overflow"
	"goatb/mempool"
	"goatb/runner"
	"goatb/status"
	"goatb/tilingcache"
)

// settings is what the options of New gather.
type settings struct {
	lookup     func(string) (string, bool)
	overrides  map[string]string
	config     []func(*Config)
	streams    int
	checks     string
	filter     string
	global     *tilingcache.Global
	deviceMem  allocator
	hostMem    allocator
	overflow   *runner.Overflow
	logger     *slog.Logger
	err        error
	fullConfig *Config
}

// allocator is a pair of a user's functions for ring memory.
type allocator struct {
	alloc func(size int64) (device.Buffer, error)
	free  func(device.Buffer) error
}

// Option changes how a Context is made. Options beat the environment.
type Option func(*settings)

// WithConfig replaces environment and defaults by a whole configuration.
func WithConfig(cfg Config) Option { return func(s *settings) { s.fullConfig = &cfg } }

// WithEnv reads variables through lookup instead of os.LookupEnv.
func WithEnv(lookup func(string) (string, bool)) Option {
	return func(s *settings) { s.lookup = lookup }
}

// WithVariable sets an ATB_* variable for this context, checked as the
// environment's values are.
func WithVariable(name, value string) Option {
	return func(s *settings) { s.overrides[name] = value }
}

// WithPolicy names the tiling policy: kernel-follow, overall or multi-stream.
func WithPolicy(name string) Option {
	return func(s *settings) {
		s.overrides[envPolicy] = name
		delete(s.overrides, envWithTiling)
		delete(s.overrides, envCopyStream)
		lookup := s.lookup
		s.lookup = func(v string) (string, bool) {
			if v == envWithTiling || v == envCopyStream {
				return "", false
			}
			return lookup(v)
		}
	}
}

// WithStreams makes n execute streams; the default is one.
func WithStreams(n int) Option { return func(s *settings) { s.streams = n } }

// WithChecks chooses the profile of checks: native, the default, or 910b.
func WithChecks(profile string) Option { return func(s *settings) { s.checks = profile } }

// WithKernelFilter restricts the choice of kernels, see kernel.ParseFilter.
func WithKernelFilter(filter string) Option { return func(s *settings) { s.filter = filter } }

// WithGlobalCache shares a tiling cache with other contexts. Without it a
// context has one of its own.
func WithGlobalCache(g *tilingcache.Global) Option { return func(s *settings) { s.global = g } }

// WithTilingAllocator takes the memory of the device tiling ring from the
// caller. Both functions must be there; free is called once for each alloc.
func WithTilingAllocator(alloc func(size int64) (device.Buffer, error), free func(device.Buffer) error) Option {
	return func(s *settings) { s.setAllocator(&s.deviceMem, "device", alloc, free) }
}

// WithHostTilingAllocator takes the memory of the host tiling ring from the
// caller.
func WithHostTilingAllocator(alloc func(size int64) (device.Buffer, error), free func(device.Buffer) error) Option {
	return func(s *settings) { s.setAllocator(&s.hostMem, "host", alloc, free) }
}

func (s *settings) setAllocator(to *allocator, what string, alloc func(int64) (device.Buffer, error), free func(device.Buffer) error) {
	if (alloc == nil) != (free == nil) {
		s.err = status.Errorf(status.ErrInvalidParam, "%s tiling allocator: want both functions or none, got one", what)
		return
	}
	*to = allocator{alloc, free}
}

// WithSolver chooses the workspace solver.
func WithSolver(t mempool.SolverType) Option {
	return func(s *settings) { s.config = append(s.config, func(c *Config) { c.Solver = t }) }
}

// WithTilingCaches selects the tiling cache levels: 0 none, 1 local, 2 global,
// 3 both.
func WithTilingCaches(levels int) Option {
	return func(s *settings) { s.config = append(s.config, func(c *Config) { c.CacheType = levels }) }
}

// WithSetupReuse switches the reuse of unchanged Setups.
func WithSetupReuse(on bool) Option {
	return func(s *settings) { s.config = append(s.config, func(c *Config) { c.SetupReuse = on }) }
}

// WithOverflowCheck looks for overflow after each kernel and reports each hit;
// with stop a hit is an error of Execute. It waits after each kernel.
func WithOverflowCheck(mode overflow.Mode, stop bool, report func(runner.OverflowHit)) Option {
	return func(s *settings) { s.overflow = &runner.Overflow{Mode: mode, Stop: stop, Report: report} }
}

// WithLogger logs plans, refusals and errors; the default discards.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

func gather(opts []Option) (*settings, Config, error) {
	s := &settings{lookup: os.LookupEnv, overrides: map[string]string{}, streams: 1, checks: "native", logger: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		if o != nil {
			o(s)
		}
	}
	if s.err != nil {
		return nil, Config{}, s.err
	}
	if s.logger == nil || s.lookup == nil {
		return nil, Config{}, status.Errorf(status.ErrInvalidParam, "logger and lookup function must not be nil")
	}
	cfg, err := ConfigFromEnv(func(name string) (string, bool) {
		if v, ok := s.overrides[name]; ok {
			return v, true
		}
		if s.fullConfig != nil {
			return "", false
		}
		return s.lookup(name)
	})
	if err != nil {
		return nil, Config{}, err
	}
	if s.fullConfig != nil {
		cfg = *s.fullConfig
	}
	for _, set := range s.config {
		set(&cfg)
	}
	if _, err := kernel.ParseFilter(s.filter); err != nil {
		return nil, Config{}, err
	}
	return s, cfg, cfg.Validate()
}
