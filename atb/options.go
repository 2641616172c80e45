package atb

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/overflow"
	"goatb/mempool"
	"goatb/runner"
	"goatb/tilingcache"
)

// WithConfig replaces environment and defaults by a whole configuration.
func WithConfig(cfg Config) Option { return atbctx.WithConfig(cfg) }

// WithEnv reads variables through lookup instead of os.LookupEnv.
func WithEnv(lookup func(string) (string, bool)) Option { return atbctx.WithEnv(lookup) }

// WithVariable sets an ATB_* variable for one context.
func WithVariable(name, value string) Option { return atbctx.WithVariable(name, value) }

// WithPolicy names the tiling policy: kernel-follow, overall, multi-stream or
// device-sink.
func WithPolicy(name string) Option { return atbctx.WithPolicy(name) }

// WithSinkForm chooses how device-sink makes graphs: update, ffts, superkernel or
// v2.
func WithSinkForm(name string) Option { return atbctx.WithSinkForm(name) }

// WithTilingScheduleOptimize sets ge.tiling_schedule_optimize for the session.
func WithTilingScheduleOptimize(value string) Option {
	return atbctx.WithTilingScheduleOptimize(value)
}

// WithSoc names the chip that device-sink makes task lists for.
func WithSoc(chip string) Option { return atbctx.WithSoc(chip) }

// WithRequireSink makes it an error that device-sink leaves a tiling which reads
// values on the host.
func WithRequireSink() Option { return atbctx.WithRequireSink() }

// WithSinkDeadline bounds a run of a tiling function on the device.
func WithSinkDeadline(d time.Duration) Option { return atbctx.WithSinkDeadline(d) }

// WithTilingLog gives f the workspace of the log before each run, on the device, of
// a tiling function of another package.
func WithTilingLog(f func(workspace []byte) error) Option { return atbctx.WithTilingLog(f) }

// WithCompiled captures graphs as a compilation has them, without tilings on the
// host, under policy device-sink.
func WithCompiled(f *Compiled) Option { return atbctx.WithCompiled(f) }

// WithMachine tells tilings of another machine than the device's; see
// [goatb/context.WithMachine].
func WithMachine(m kernel.Machine) Option { return atbctx.WithMachine(m) }

// WithStreams makes n execute streams.
func WithStreams(n int) Option { return atbctx.WithStreams(n) }

// WithChecks chooses the profile of checks: native or 910b.
func WithChecks(profile string) Option { return atbctx.WithChecks(profile) }

// WithKernelFilter restricts the choice of kernels.
func WithKernelFilter(filter string) Option { return atbctx.WithKernelFilter(filter) }

// WithGlobalCache shares a tiling cache with other contexts.
func WithGlobalCache(g *tilingcache.Global) Option { return atbctx.WithGlobalCache(g) }

// NewGlobalCache makes a tiling cache that contexts may share.
func NewGlobalCache(slots int) (*tilingcache.Global, error) { return tilingcache.NewGlobal(slots) }

// WithTilingAllocator takes the device tiling ring's memory from the caller.
func WithTilingAllocator(alloc func(size int64) (device.Buffer, error), free func(device.Buffer) error) Option {
	return atbctx.WithTilingAllocator(alloc, free)
}

// WithHostTilingAllocator takes the host tiling ring's memory from the caller.
func WithHostTilingAllocator(alloc func(size int64) (device.Buffer, error), free func(device.Buffer) error) Option {
	return atbctx.WithHostTilingAllocator(alloc, free)
}

// WithSolver chooses the workspace solver.
func WithSolver(t mempool.SolverType) Option { return atbctx.WithSolver(t) }

// WithTilingCaches selects the tiling cache levels: 0 none, 1 local, 2 global,
// 3 both.
func WithTilingCaches(levels int) Option { return atbctx.WithTilingCaches(levels) }

// WithSetupReuse switches the reuse of unchanged Setups.
func WithSetupReuse(on bool) Option { return atbctx.WithSetupReuse(on) }

// WithOverflowCheck looks for overflow after each kernel.
func WithOverflowCheck(mode overflow.Mode, stop bool, report func(runner.OverflowHit)) Option {
	return atbctx.WithOverflowCheck(mode, stop, report)
}

// WithID gives the context its name in logs and timelines.
func WithID(id uuid.UUID) Option { return atbctx.WithID(id) }

// WithLogger logs plans and refusals.
func WithLogger(l *slog.Logger) Option { return atbctx.WithLogger(l) }
