package operation

import (
	"log/slog"
	"reflect"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/runner"
	"goatb/status"
	"goatb/tensor"
)

// Setup checks the tensors, plans the operation and returns the bytes of
// workspace that Execute needs. It reads descriptors and host data, does no
// device work and does not wait. When nothing that the plan depends on has
// changed since the last Setup it returns at once. A pack without any tensors
// stands for those of the last Setup, which succeeded on this context: then only
// their host data are looked at, in time that does not depend on the number of
// tensors.
//
// Errors follow ATB's order of checks, see the package's checker; besides,
// ErrInvalidContextAddr for a nil or closed context, ErrInvalidStream for a
// stream id that the context does not have, ErrOutOfHostMemory when the tilings
// exceed a tiling block. After an error Execute is refused until a Setup
// succeeds.
func (o *Op) Setup(pack VariantPack, c *atbctx.Context) (int64, error) {
	if err := o.enter(); err != nil {
		return 0, err
	}
	defer o.leave()
	if err := c.Enter(atbctx.HostSide); err != nil {
		return 0, status.Place(err, status.ErrInvalidContextAddr, o.name, StageSetup.String(), "")
	}
	defer c.Leave(atbctx.HostSide)
	own := o.ready && o.c == c && len(pack.In) == 0 && len(pack.Out) == 0
	if own {
		pack = VariantPack{In: o.in, Out: o.out}
	}
	o.ready = false
	if h := c.Env().Host; h != nil {
		h.Begin(device.SetupWork, nil)
		defer h.End(device.SetupWork)
	}
	n := c.Counters()
	n.Setups.Add(1)
	hit, err := o.setup(&pack, c, own)
	if err != nil {
		o.values.forget()
		return 0, status.Place(err, status.ErrInvalidParam, o.name, StageSetup.String(), "")
	}
	if hit {
		n.SetupHits.Add(1)
	}
	if !own {
		o.keepTensors(&pack)
	}
	o.ready = true
	return o.size, nil
}

// keepTensors remembers the tensors for an Execute without any.
func (o *Op) keepTensors(pack *VariantPack) {
	o.again = o.again && sameMemory(o.in, pack.In) && sameMemory(o.out, pack.Out)
	o.in = append(o.in[:0], pack.In...)
	o.out = append(o.out[:0], pack.Out...)
}

// sameMemory reports whether tensors lie where others did.
func sameMemory(a, b []device.Tensor) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Data != b[i].Data || (a[i].Host == nil) != (b[i].Host == nil) {
			return false
		}
	}
	return true
}

// setup plans for a pack, which is that of the last Setup where it is the
// operation's own.
func (o *Op) setup(pack *VariantPack, c *atbctx.Context, own bool) (hit bool, err error) {
	if o.c != c {
		if err := o.attach(c); err != nil {
			return false, err
		}
	}
	changed := o.values.read(o.hostPorts, pack.In)
	if err := o.evaluate(); err != nil {
		return false, err
	}
	if c.SetupReuse() && o.run != nil && o.low != nil && o.values.err == nil {
		ok, err := o.reuse(pack, changed, own)
		if ok || err != nil {
			return ok, err
		}
	}
	return false, o.plan(pack)
}

// evaluate evaluates the conditions in the tree, once per Setup.
func (o *Op) evaluate() error {
	cond, ok := o.spec.(conditional)
	if !ok {
		return nil
	}
	if o.outcome == nil {
		o.outcome = map[*If]bool{}
	}
	clear(o.outcome)
	var err error
	o.condWords, err = cond.conditions(o.condWords[:0], o.outcome)
	return err
}

// attach moves the operation to a context.
func (o *Op) attach(c *atbctx.Context) error {
	p, err := ProfileByName(c.Checks())
	if err != nil {
		return err
	}
	if err := o.detach(); err != nil {
		c.Logger().Warn("runner not returned", "op", o.name, "err", err)
	}
	o.c, o.profile, o.low = c, p, nil
	return nil
}

// reuse reports whether the last plan still holds; it checks host values that
// changed.
func (o *Op) reuse(pack *VariantPack, changed, own bool) (bool, error) {
	o.fixedWords()
	if !o.run.Planned(o.words) || !own && !o.run.MatchesDescs(pack.In, pack.Out) {
		return false, nil
	}
	if changed {
		if err := o.checkHostData(pack.In); err != nil {
			return false, err
		}
	}
	if ok, err := o.valuesFit(changed); !ok || err != nil {
		return false, err
	}
	return o.low.setupForeign(pack)
}

// valuesFit checks host values that changed and reports whether the plan that
// they ask for is the last one.
func (o *Op) valuesFit(changed bool) (bool, error) {
	if !changed {
		return true, nil
	}
	if err := o.low.refresh(o.values.byInput); err != nil {
		return false, err
	}
	if err := o.low.planKeys(&o.words); err != nil {
		return false, err
	}
	return o.run.Matches(o.words), nil
}

// fixedWords gathers what the plan depends on besides descriptors and host
// values.
func (o *Op) fixedWords() {
	o.words = append(o.words[:0], o.c.Epoch(), o.version.Load(), uint64(o.Stream()))
	o.words = append(o.words, o.condWords...)
}

// plan makes a new plan.
func (o *Op) plan(pack *VariantPack) error {
	check, err := o.checker(o.profile)
	if err != nil {
		return err
	}
	low := newLowering(o.c, pack.In)
	low.conditions = o.outcome
	q := check.query(StageSetup, descs(pack.In), descs(pack.Out), o.values.byInput)
	q.low = low
	if err := check.check(o.spec, q); err != nil {
		return err
	}
	if err := o.checkHostData(pack.In); err != nil {
		return err
	}
	q.from = identity(q.In)
	low.remember(o.spec, q, q.from)
	g, err := o.lower(q)
	if err != nil {
		return err
	}
	if err := o.install(g, pack, low); err != nil {
		return err
	}
	o.c.Logger().Debug("planned", slog.String("op", o.name), slog.Int("kernels", o.run.Plan().Kernels()), slog.Int64("workspace", o.size))
	return nil
}

// checkHostData wants host data on every host port that is there.
func (o *Op) checkHostData(in []device.Tensor) error {
	for _, i := range o.hostPorts {
		if !in[i].Desc.Empty() && in[i].Host == nil {
			return status.Errorf(status.ErrInvalidTensorAddr, "want host data: its values are read on the host").On(portName("input", i, o.sig.In))
		}
	}
	if e := o.values.err; e != nil {
		return e.On(portName("input", o.values.errAt, o.sig.In))
	}
	return nil
}

func (o *Op) lower(q *Query) (*kernelgraph.Graph, error) {
	b := newBuilder(o.c.Lowering(), &o.sig, q)
	b.SetStream(o.Stream())
	if err := o.spec.Lower(b, q); err != nil {
		return nil, err
	}
	return b.Build()
}

// install plans the workspace and gives the runner its plan.
func (o *Op) install(g *kernelgraph.Graph, pack *VariantPack, low *lowering) error {
	if err := o.checkStreams(g); err != nil {
		return err
	}
	w, err := g.PlanWorkspace(o.c.Planner(), o.c.WorkspaceOptions())
	if err != nil {
		return err
	}
	env := o.c.Env()
	p, err := runner.NewPlan(g, w, o.name, o.Stream(), env.BlockSize, env.SlotBytes)
	if err != nil {
		return err
	}
	p.Option = o.option.String()
	o.fixedWords()
	if err := low.planKeys(&o.words); err != nil {
		return err
	}
	o.takeRunner()
	o.again = false
	o.run.SetPlan(p, runner.NewKey(pack.In, pack.Out, o.words), env)
	o.low, o.size = low, w.Size
	o.inBytes, o.outBytes = sizes(o.inBytes[:0], pack.In), sizes(o.outBytes[:0], pack.Out)
	for max := &o.c.Counters().WorkspaceMax; ; {
		old := max.Load()
		if old >= w.Size || max.CompareAndSwap(old, w.Size) {
			return nil
		}
	}
}

// checkStreams wants the streams that nodes were put on with SetStream.
func (o *Op) checkStreams(g *kernelgraph.Graph) error {
	have := o.c.Streams()
	if g.Streams <= have {
		return nil
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Stream >= have {
			return status.Place(o.c.NoStream("SetStream id", n.Stream), status.ErrInvalidStream, "", "", n.Path)
		}
	}
	return o.c.NoStream("SetStream id", g.Streams-1)
}

// takeRunner makes sure that there is a runner: an idle one of an operation
// with equal parameters, which brings its tilings along, or a new one.
func (o *Op) takeRunner() {
	if o.run != nil {
		o.run.Owner = o.spec
		return
	}
	if o.pooled() {
		o.run = o.c.Pool().Take(o.sig.Name, func(owner any) bool {
			s, ok := owner.(Spec)
			return ok && reflect.TypeOf(s) == reflect.TypeOf(o.spec) && equalSpecs(s, o.spec)
		})
	}
	n := o.c.Counters()
	if o.run != nil {
		n.PoolHits.Add(1)
		return
	}
	n.PoolMisses.Add(1)
	o.run = &runner.Runner{Owner: o.spec}
}

// sizes appends the byte sizes of descriptors.
func sizes(dst []int64, ts []device.Tensor) []int64 {
	for i := range ts {
		dst = append(dst, ts[i].Desc.Bytes())
	}
	return dst
}

func descs(ts []device.Tensor) []tensor.Desc {
	d := make([]tensor.Desc, len(ts))
	for i := range ts {
		d[i] = ts[i].Desc
	}
	return d
}
