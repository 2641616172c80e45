package context

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/google/uuid"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/overflow"
	"goatb/mempool"
	"goatb/runner"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/compiled"
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
	compiled   *compiled.File
	logger     *slog.Logger
	id         uuid.UUID
	chip       string // the device's own, empty for none
	errs       []error
	fullConfig *Config
	tilingLog  func([]byte) error
	machine    *kernel.Machine
}

// allocator is a pair of a user's functions for ring memory.
type allocator struct {
	alloc func(size int64) (device.Buffer, error)
	free  func(device.Buffer) error
}

// Option changes how a Context is made. Options beat the environment.
type Option func(*settings)

// WithConfig replaces environment and defaults by a whole configuration; other
// options still change it, in whatever order they are given.
func WithConfig(cfg Config) Option { return func(s *settings) { s.fullConfig = &cfg } }

// WithEnv reads variables through lookup instead of os.LookupEnv.
func WithEnv(lookup func(string) (string, bool)) Option {
	return func(s *settings) { s.lookup = lookup }
}

// WithVariable sets an ATB_* variable for this context, checked as the
// environment's values are. The environment's values of other spellings of the
// variable, and of other variables that name the tiling policy, do not count.
func WithVariable(name, value string) Option {
	return func(s *settings) { s.overrides[name] = value }
}

// WithPolicy names the tiling policy: kernel-follow, overall, multi-stream or
// device-sink.
func WithPolicy(name string) Option { return WithVariable(envPolicy, name) }

// WithSinkForm chooses how device-sink makes graphs: update, the default, ffts,
// superkernel or v2.
func WithSinkForm(name string) Option { return WithVariable(envSinkForm, name) }

// WithTilingScheduleOptimize sets ge.tiling_schedule_optimize for the session:
// "", "0" or "1". A graph's own value is nearer.
func WithTilingScheduleOptimize(value string) Option {
	return func(s *settings) {
		if _, err := sink.ParseSetting(value); err != nil {
			s.errs = append(s.errs, err)
			return
		}
		s.overrides[envSinkOption] = value
	}
}

// WithSoc names the chip that device-sink makes task lists for, such as 910B3; see
// sink.ProfileOf. The default is the one that a simulated device stands for, else
// 910B.
func WithSoc(chip string) Option { return WithVariable(envSinkSoc, chip) }

// WithRequireSink makes it an error of Execute that device-sink leaves a tiling
// which reads values on the host.
func WithRequireSink() Option { return WithVariable(envRequireSink, "1") }

// WithSinkDeadline bounds a run of a tiling function on the device, rounded up to
// milliseconds, 0 to 1<<30 of them; 0 is the device's default.
func WithSinkDeadline(d time.Duration) Option {
	return func(s *settings) {
		if d < 0 || d > maxSinkDeadline*time.Millisecond {
			s.errs = append(s.errs, status.Errorf(status.ErrInvalidParam, "sink deadline: want 0 to %v, got %v", maxSinkDeadline*time.Millisecond, d))
			return
		}
		s.config = append(s.config, func(c *Config) { c.SinkDeadline = int((d + time.Millisecond - 1) / time.Millisecond) })
	}
}

// WithTilingLog gives f the workspace of the log before each run, on the device, of
// a tiling function of another package (kernel.Def.Package). f runs on goroutines
// of the device; its errors are logged and stop nothing.
func WithTilingLog(f func(workspace []byte) error) Option {
	return func(s *settings) { s.tilingLog = f }
}

// WithCompiled captures graphs as a compilation has them, which takes no tiling on
// the host. It chooses policy device-sink and the compilation's form where no other
// option says something else. A graph whose name the compilation has must be the
// one that was compiled; graphs of other names are captured as without it. Errors
// of New: a compilation for another SoC, form, machine or build of the library, and
// what makes the host launch every kernel itself: a wait after each kernel or
// operation of a graph, or WithOverflowCheck.
func WithCompiled(f *compiled.File) Option { return func(s *settings) { s.compiled = f } }

// WithMachine tells tilings of another machine than the device's: they cut their
// work for it. It is for tests and for a search of better tilings; fewer cores leave
// workers idle, more make blocks wait. At least one core, and no negative sizes.
func WithMachine(m kernel.Machine) Option { return func(s *settings) { s.machine = &m } }

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
// caller. Both functions must be there, or none, which is the device's own memory;
// free is called once for each alloc.
func WithTilingAllocator(alloc func(size int64) (device.Buffer, error), free func(device.Buffer) error) Option {
	return func(s *settings) { s.setAllocator(&s.deviceMem, "device", alloc, free) }
}

// WithHostTilingAllocator takes the memory of the host tiling ring from the
// caller, as WithTilingAllocator does.
func WithHostTilingAllocator(alloc func(size int64) (device.Buffer, error), free func(device.Buffer) error) Option {
	return func(s *settings) { s.setAllocator(&s.hostMem, "host", alloc, free) }
}

func (s *settings) setAllocator(to *allocator, what string, alloc func(int64) (device.Buffer, error), free func(device.Buffer) error) {
	if (alloc == nil) != (free == nil) {
		s.errs = append(s.errs, status.Errorf(status.ErrInvalidParam, "%s tiling allocator: want both functions or none, got one", what))
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

// WithID gives the context its name in logs and timelines; the default is a new
// one.
func WithID(id uuid.UUID) Option { return func(s *settings) { s.id = id } }

// WithLogger logs plans, refusals and errors; the default discards.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.logger = l } }

// gather applies options. chip is the device's own, empty for none.
func gather(opts []Option, chip string) (*settings, Config, error) {
	s := &settings{id: uuid.New(), chip: chip, lookup: os.LookupEnv, overrides: map[string]string{}, streams: 1, checks: "native", logger: slog.New(slog.DiscardHandler)}
	for _, o := range opts {
		if o != nil {
			o(s)
		}
	}
	if s.compiled != nil {
		s.prefer(envPolicy, policySink)
		s.prefer(envSinkForm, s.compiled.Form.String())
	}
	cfg, err := s.configure()
	errs := append(s.problems(), err)
	for _, set := range s.config {
		set(&cfg)
	}
	errs = append(errs, cfg.Validate())
	return s, cfg, joinErrors(errs)
}

// joinErrors joins errors; one alone stays as it is.
func joinErrors(errs []error) error {
	errs = slices.DeleteFunc(errs, func(e error) bool { return e == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// problems lists what is wrong with the settings besides the configuration.
func (s *settings) problems() []error {
	errs := s.errs
	if s.logger == nil || s.lookup == nil {
		errs = append(errs, status.Errorf(status.ErrInvalidParam, "want a logger and a lookup function, got nil"))
	}
	if s.streams < 1 || s.streams > MaxStreams {
		errs = append(errs, status.Errorf(status.ErrInvalidParam, "want 1 to %d streams, got %d", MaxStreams, s.streams))
	}
	if s.checks != "native" && s.checks != "910b" {
		errs = append(errs, status.Errorf(status.ErrInvalidParam, "want checks native or 910b, got %q", s.checks))
	}
	if _, err := kernel.ParseFilter(s.filter); err != nil {
		errs = append(errs, err)
	}
	for name := range s.overrides {
		if !known(name) {
			errs = append(errs, status.Errorf(status.ErrInvalidParam, "unknown variable %s", name))
		}
	}
	return errs
}

// configure reads the overrides over the environment or over a whole
// configuration. An override shadows every variable that says the same thing.
func (s *settings) configure() (Config, error) {
	base := DefaultConfig()
	if s.chip != "" {
		base.SinkSoc = s.chip
	}
	if s.fullConfig != nil {
		base = *s.fullConfig
		base.sources = maps.Clone(base.sources)
		if s.shadowed(envPolicy) {
			delete(base.sources, envPolicy)
		}
	}
	return base.over(func(name string) (string, bool) {
		if v, ok := s.overrides[name]; ok {
			return v, true
		}
		if s.fullConfig != nil || s.lookup == nil || s.shadowed(name) {
			return "", false
		}
		return s.lookup(name)
	})
}

// prefer sets a variable that no option sets.
func (s *settings) prefer(name, value string) {
	if !s.shadowed(name) {
		s.overrides[name] = value
	}
}

// shadowed reports whether an override says what the variable could say.
func (s *settings) shadowed(name string) bool {
	for _, group := range spellings() {
		if slices.Contains(group, name) && slices.ContainsFunc(group, func(n string) bool { _, ok := s.overrides[n]; return ok }) {
			return true
		}
	}
	return false
}
