package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"goatb/atb"
	"goatb/kernelgraph"
	"goatb/runner"
)

// Run compares. Errors: a configuration that cannot be, ctx's, and those of the
// operations and the device.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	r := newResult(&cfg)
	for _, policy := range cfg.Policies {
		if err := r.add(ctx, &cfg, policy); err != nil {
			return nil, err
		}
	}
	for i := range r.Policies {
		r.Policies[i].Ratio = float64(r.Policies[i].StepNs) / float64(r.Policies[0].StepNs)
	}
	if cfg.Sensitivity {
		r.conclude()
	}
	return r, nil
}

func newResult(cfg *Config) *Result {
	r := &Result{
		ID: cfg.id("").String(), Profile: "cpu", Model: cfg.Shape.Name, Parallel: cfg.Shape.Parallel, DType: cfg.DType.String(),
		Batch: cfg.Load.Batch, Context: cfg.Load.Context, Prompt: max(cfg.Load.Prompt, 1), Steps: cfg.Load.Steps,
		Numerics: cfg.Numerics || cfg.Profile == nil, Caches: !cfg.NoCaches, Policies: []Policy{},
	}
	if cfg.Profile == nil {
		return r
	}
	r.Profile = cfg.Profile.Name
	for _, p := range cfg.Profile.Params() {
		r.Costs = append(r.Costs, Cost{p.Name, p.Unit, p.Value, string(p.Basis), p.Source})
	}
	if cfg.Sensitivity {
		for _, name := range cfg.Profile.Estimates() {
			for _, f := range factors {
				r.Sensitivity = append(r.Sensitivity, Sensitivity{Param: name, Factor: f, StepNs: map[string]int64{}})
			}
		}
	}
	return r
}

// factors are those of sensitivities.
var factors = [...]float64{0.5, 2}

// add measures a policy.
func (r *Result) add(ctx context.Context, cfg *Config, policy string) (err error) {
	if cfg.Progress != nil {
		cfg.Progress(policy)
	}
	b, err := open(cfg, policy, cfg.Profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	steps, before, err := b.run(ctx)
	if err != nil {
		return fmt.Errorf("policy %s: %w", policy, err)
	}
	r.Device = b.dev.Props().Name
	r.Policies = append(r.Policies, outcome(b, steps, before))
	if len(r.Policies) == 1 {
		r.Memory = memoryOf(b)
	}
	if b.kept != nil {
		r.Timelines = append(r.Timelines, b.kept)
	}
	for i := range r.Sensitivity {
		x := &r.Sensitivity[i]
		if cfg.Progress != nil {
			cfg.Progress(fmt.Sprintf("%s with %s x %g", policy, x.Param, x.Factor))
		}
		if x.StepNs[b.c.Policy()], err = b.changed(ctx, x.Param, x.Factor); err != nil {
			return fmt.Errorf("policy %s, %s x %g: %w", policy, x.Param, x.Factor, err)
		}
	}
	return nil
}

// run measures all steps. It returns the counters from before them.
func (b *Session) run(ctx context.Context) ([]Step, atb.Stats, error) {
	if err := b.restart(ctx); err != nil {
		return nil, atb.Stats{}, err
	}
	before := b.c.Stats()
	list := make([]Step, b.cfg.Load.Steps)
	for i := range list {
		var err error
		if list[i], err = b.measure(ctx); err != nil {
			return nil, atb.Stats{}, err
		}
	}
	return list, before, nil
}

// outcome sums steps up.
func outcome(b *Session, steps []Step, before atb.Stats) Policy {
	m, after := median(steps), b.c.Stats()
	p := Policy{
		Policy: b.c.Policy(), StepNs: m.Ns, HostBusyNs: m.HostBusyNs, DeviceBusyNs: m.DeviceBusyNs, Idle: m.Idle,
		BytesMoved:  after.BytesMoved - before.BytesMoved,
		RingStalls:  after.HostRing.Stalls + after.DeviceRing.Stalls - before.HostRing.Stalls - before.DeviceRing.Stalls,
		Kernels:     after.Kernels - before.Kernels,
		HostTilings: after.HostTilings - before.HostTilings, DeviceTilings: after.DeviceTilings - before.DeviceTilings,
		Cache: Cache{
			LocalHits: after.LocalHits - before.LocalHits, GlobalHits: after.GlobalHits - before.GlobalHits, Misses: after.Misses - before.Misses,
		},
		SetupHits: after.SetupHits - before.SetupHits, WorkspaceBytes: after.WorkspaceBytes, Fallbacks: fallbacks(after.FallbackReasons),
	}
	for _, s := range after.Streams {
		p.QueueDepthMax = max(p.QueueDepthMax, s.DepthMax)
	}
	return p
}

// fallbacks joins those of all operations that have the same node and reason.
func fallbacks(list []runner.Fallback) (out []Fallback) {
	for _, f := range list {
		reason := f.Gate + ": " + f.Reason
		i := slices.IndexFunc(out, func(o Fallback) bool { return o.Node == f.Node && o.Reason == reason })
		if i < 0 {
			i = len(out)
			out = append(out, Fallback{Node: f.Node, Reason: reason})
		}
		out[i].Times += f.Times
	}
	return out
}

// median is the step in the middle by length.
func median(steps []Step) Step {
	s := slices.Clone(steps)
	slices.SortStableFunc(s, func(a, b Step) int { return cmp.Compare(a.Ns, b.Ns) })
	return s[len(s)/2]
}

// changed measures a step with one parameter multiplied.
func (b *Session) changed(ctx context.Context, param string, factor float64) (ns int64, err error) {
	p, err := b.cfg.Profile.Scaled(param, factor)
	if err != nil {
		return 0, err
	}
	x := b
	if b.sim.Fits(p) {
		if err := b.sim.SetProfile(p); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, b.sim.SetProfile(b.cfg.Profile)) }()
	} else {
		if x, err = open(b.cfg, b.c.Policy(), p); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, x.Close()) }()
	}
	steps, err := x.lengths(ctx)
	if err != nil {
		return 0, err
	}
	return median(steps).Ns, nil
}

// lengths measures a step that is like the first one measured, and two more.
func (b *Session) lengths(ctx context.Context) ([]Step, error) {
	list := make([]Step, 0, sensitivitySteps)
	b.s.Rewind()
	for i := range b.warm + min(sensitivitySteps, b.cfg.Load.Steps) {
		b.rec.Reset()
		start := b.now()
		if err := b.step(ctx); err != nil {
			return nil, err
		}
		if i >= b.warm {
			list = append(list, Step{Ns: b.now().Sub(start).Nanoseconds()})
		}
	}
	return list, nil
}

// sensitivitySteps is the number of steps of which a sensitivity is the median.
const sensitivitySteps = 3

// conclude compares every two policies under all changes.
func (r *Result) conclude() {
	for i := range r.Policies {
		for j := range r.Policies[:i] {
			fast, slow := &r.Policies[j], &r.Policies[i]
			if slow.StepNs < fast.StepNs {
				fast, slow = slow, fast
			}
			c := Conclusion{Faster: fast.Policy, Slower: slow.Policy, Ratio: float64(slow.StepNs) / float64(fast.StepNs)}
			for _, s := range r.Sensitivity {
				if s.StepNs[slow.Policy] < s.StepNs[fast.Policy] {
					c.Fails = append(c.Fails, fmt.Sprintf("%s x %g", s.Param, s.Factor))
				}
			}
			c.Solid = len(c.Fails) == 0
			r.Conclusions = append(r.Conclusions, c)
		}
	}
}

// memoryOf describes the workspace of the first layer.
func memoryOf(b *Session) Memory {
	op := b.s.Layer()
	g, w := op.Graph(), op.Workspace()
	m := Memory{
		Operation: op.Name(), Nodes: len(g.Nodes), Scratch: w.Scratch, Arena: w.Arena, LowerBound: w.LowerBound,
		Method: w.Method, Optimal: w.Optimal, PeakAt: w.PeakAt, Buffers: []Buffer{},
	}
	for _, l := range w.Lives {
		m.Buffers = append(m.Buffers, bufferOf(g, w, l))
	}
	return m
}

func bufferOf(g *kernelgraph.Graph, w *kernelgraph.Workspace, l kernelgraph.Life) Buffer {
	x := &g.Tensors[l.Ref]
	return Buffer{Name: x.Name, Size: x.Desc.Bytes(), First: l.First, Last: l.Last, Offset: w.Offset[l.Ref]}
}
