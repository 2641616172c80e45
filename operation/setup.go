package operation

import (
	"log/slog"
	"reflect"
	"slices"

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
// changed since the last Setup it returns at once.
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
	defer o.busy.Store(false)
	if err := c.Enter(atbctx.HostSide); err != nil {
		return 0, status.Place(err, status.ErrInvalidContextAddr, o.name, StageSetup.String(), "")
	}
	defer c.Leave(atbctx.HostSide)
	o.ready = false
	n := c.Counters()
	n.Setups.Add(1)
	hit, err := o.setup(&pack, c)
	if err != nil {
		return 0, status.Place(err, status.ErrInvalidParam, o.name, StageSetup.String(), "")
	}
	if hit {
		n.SetupHits.Add(1)
	}
	o.keepTensors(&pack)
	o.ready = true
	return o.size, nil
}

// keepTensors remembers the tensors for an Execute without any.
func (o *Op) keepTensors(pack *VariantPack) {
	o.in = append(o.in[:0], pack.In...)
	o.out = append(o.out[:0], pack.Out...)
}

func (o *Op) setup(pack *VariantPack, c *atbctx.Context) (hit bool, err error) {
	if o.c != c {
		if err := o.attach(c); err != nil {
			return false, err
		}
	}
	changed, err := o.values.read(&o.sig, pack.In)
	if err != nil {
		return false, err
	}
	if err := o.evaluate(); err != nil {
		return false, err
	}
	if c.SetupReuse() && o.run != nil && o.low != nil {
		ok, err := o.reuse(pack, changed)
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
func (o *Op) reuse(pack *VariantPack, changed bool) (bool, error) {
	if changed {
		o.low.refresh(&o.values)
	}
	if err := o.keyWords(o.low); err != nil {
		return false, err
	}
	if !o.run.Matches(pack.In, pack.Out, o.words) {
		return false, nil
	}
	if changed {
		if err := o.low.checkValues(); err != nil {
			o.values.forget()
			return false, err
		}
	}
	return o.low.setupForeign(pack, o.c)
}

// keyWords gathers what the plan depends on besides descriptors.
func (o *Op) keyWords(low *lowering) error {
	o.words = append(o.words[:0], o.c.Epoch(), o.version.Load(), uint64(o.Stream()))
	o.words = append(o.words, o.condWords...)
	return low.planKeys(&o.words)
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
	low.remember(o.spec, q, identity(len(q.In)))
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
	for i, p := range o.sig.In {
		if p.Host && !in[i].Desc.Empty() && in[i].Host == nil {
			return status.Errorf(status.ErrInvalidTensorAddr, "want host data: its values are read on the host").On(portName("input", i, o.sig.In))
		}
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
	if have := o.c.Streams(); g.Streams > have {
		return status.Errorf(status.ErrInvalidStream, "want stream ids below %d, got %d", have, g.Streams-1)
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
	if err := o.keyWords(low); err != nil {
		return err
	}
	o.takeRunner()
	o.run.SetPlan(p, runner.NewKey(pack.In, pack.Out, o.words), env)
	o.low, o.size = low, w.Size
	for max := &o.c.Counters().WorkspaceMax; ; {
		old := max.Load()
		if old >= w.Size || max.CompareAndSwap(old, w.Size) {
			return nil
		}
	}
}

// takeRunner makes sure that there is a runner: an idle one of an operation
// with equal parameters, which brings its tilings along, or a new one.
func (o *Op) takeRunner() {
	if o.run != nil {
		o.run.Owner = o.spec
		return
	}
	if _, isGraph := o.spec.(*graph); !isGraph {
		o.run = o.c.Pool().Take(o.poolType(), func(owner any) bool { return reflect.DeepEqual(owner, o.spec) })
	}
	n := o.c.Counters()
	if o.run != nil {
		n.PoolHits.Add(1)
		return
	}
	n.PoolMisses.Add(1)
	o.run = &runner.Runner{Owner: o.spec}
}

func descs(ts []device.Tensor) []tensor.Desc {
	d := make([]tensor.Desc, len(ts))
	for i := range ts {
		d[i] = ts[i].Desc
	}
	return d
}

// hostValues holds the values of the host ports by input, in memory that is
// reused from Setup to Setup.
type hostValues struct {
	byInput [][]int64
	fresh   []int64
}

// read reads the host data that is there and reports whether some values differ
// from those read last.
func (v *hostValues) read(sig *Signature, in []device.Tensor) (changed bool, err error) {
	for len(v.byInput) < len(in) {
		v.byInput = append(v.byInput, nil)
	}
	for i := range in {
		if i >= len(sig.In) || !sig.In[i].Host {
			continue
		}
		t := &in[i]
		if t.Desc.Empty() || t.Host == nil {
			v.byInput[i] = nil
			continue
		}
		if v.fresh, err = t.AppendValues(v.fresh[:0]); err != nil {
			return false, status.Place(err, status.ErrInvalidTensorAddr, "", "", "")
		}
		if v.byInput[i] == nil || !slices.Equal(v.fresh, v.byInput[i]) {
			v.byInput[i] = append(v.byInput[i][:0], v.fresh...)
			changed = true
		}
	}
	return changed, nil
}

// forget makes the next read report a change.
func (v *hostValues) forget() { clear(v.byInput) }
