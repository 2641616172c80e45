package runner

import (
	"slices"
	"strconv"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling"
	"goatb/tiling/sink/capture"
	"goatb/tilingcache"
)

// Runner executes one operation: a plan, its binding, its local tiling cache.
// It belongs to one goroutine at a time.
type Runner struct {
	// Owner is the operation's parameters; a Pool hands the runner to an
	// operation with equal ones first.
	Owner any

	plan *Plan
	key  Key
	env  *Env
	// policy is that of the launch at hand: the context's may change between
	// its two halves.
	policy tiling.Policy
	local  *tilingcache.Local
	job    tiling.Job
	tally  tally

	launches []device.Launch
	buffers  []device.Buffer
	foreign  []foreignArgs
	problems []kernel.Problem
	// current is the tiling of each kernel for the host values at hand, nil
	// when it has to be looked up.
	current  []*tilingcache.Entry
	skip     []bool
	held     held
	resident resident
	// moved is the number of kernels whose tilings are on their way.
	moved int
	// together says that the launch at hand may hold kernels back to launch
	// them together.
	together bool

	// values holds the host values of the last launch by input. What the launch
	// itself makes comes through the staging memory, which it fills when ready has
	// fired; fresh is spare.
	values  [][]int64
	staging device.Buffer
	ready   device.Event
	fresh   []int64

	in, out   []device.Buffer
	workspace device.Buffer
	bound     bool
	// version counts bindings.
	version uint64
	// captured is what launches share under a policy that captures, memory the
	// memory of a replay, and kept host data of inputs for a later launch.
	captured captured
	memory   capture.Bound
	kept     [][]byte
	prepared bool

	// fork and joins order the streams of a launch; forked says that the launch
	// at hand has used them.
	fork   device.Event
	joins  []device.Event
	forked bool
}

// Plan returns the runner's plan, nil before the first SetPlan.
func (r *Runner) Plan() *Plan { return r.plan }

// SetPlan gives the runner a plan under a key. What the local cache holds
// stays: its entries carry their own keys.
func (r *Runner) SetPlan(p *Plan, key Key, env *Env) {
	r.Discard()
	r.retire()
	r.plan, r.key, r.env = p, key, env
	n := len(p.kernels)
	if r.local == nil {
		r.local = tilingcache.NewLocal(env.LocalSlots)
	}
	r.local.Grow(n)
	if env.Global != nil {
		for op, kernels := range p.opKernels {
			env.Global.Grow(op, kernels)
		}
	}
	r.launches = make([]device.Launch, n)
	r.buffers = make([]device.Buffer, p.operands)
	r.problems = make([]kernel.Problem, n)
	r.current = make([]*tilingcache.Entry, n)
	r.skip = make([]bool, n)
	r.values = make([][]int64, len(p.Graph.Inputs))
	r.in, r.out = make([]device.Buffer, len(p.Graph.Inputs)), make([]device.Buffer, len(p.Graph.Outputs))
	r.memory = capture.Bound{In: r.in, Out: r.out, Host: make([][]byte, len(r.in))}
	r.kept = make([][]byte, len(r.in))
	r.bound, r.resident = false, resident{}
	at := 0
	for k := range p.kernels {
		ks := &p.kernels[k]
		l := &r.launches[k]
		l.Program, l.Inputs, l.Label = ks.node.Kernel.Program(), len(ks.node.In), &ks.label
		l.Buffers = r.buffers[at : at+len(ks.operands) : at+len(ks.operands)]
		at += len(ks.operands)
		r.problems[k] = ks.node.Problem
		r.problems[k].Values = make([][]int64, len(ks.values))
	}
	r.foreign, r.staging = p.foreignArgs(), p.staging()
	r.job = tiling.Job{Slots: p.slots, Bytes: p.bytes, Launches: r.launches, Source: r, Main: p.main}
}

// Matches reports whether the plan was made under exactly these words.
func (r *Runner) Matches(words []uint64) bool { return r.key.set && slices.Equal(r.key.words, words) }

// Planned reports whether the plan was made under words that begin with these.
func (r *Runner) Planned(words []uint64) bool {
	return r.key.set && len(r.key.words) >= len(words) && slices.Equal(r.key.words[:len(words)], words)
}

// MatchesDescs reports whether the plan was made for these descriptors.
func (r *Runner) MatchesDescs(in, out []device.Tensor) bool {
	return r.key.set && sameDescs(r.key.in, in) && sameDescs(r.key.out, out)
}

func sameDescs(descs []tensor.Desc, ts []device.Tensor) bool {
	if len(descs) != len(ts) {
		return false
	}
	for i := range ts {
		if !ts[i].Desc.Same(&descs[i]) {
			return false
		}
	}
	return true
}

// Forget makes the next Matches fail: the plan is out of date.
func (r *Runner) Forget() { r.key = Key{} }

// Key is what a plan depends on: descriptors and words for everything else
// (stream, configuration, parameters, conditions).
type Key struct {
	words   []uint64
	in, out []tensor.Desc
	set     bool
}

// NewKey copies what a plan depends on.
func NewKey(in, out []device.Tensor, words []uint64) Key {
	return Key{words: slices.Clone(words), in: descsOf(in), out: descsOf(out), set: true}
}

func descsOf(ts []device.Tensor) []tensor.Desc {
	d := make([]tensor.Desc, len(ts))
	for i := range ts {
		d[i] = ts[i].Desc
	}
	return d
}

// takeValues takes over the host values that tilings depend on and drops the
// current tilings of kernels whose values changed.
func (r *Runner) takeValues(values [][]int64) error {
	for _, i := range r.plan.values {
		d := &r.plan.Graph.Tensors[r.plan.Graph.Inputs[i]].Desc
		if i >= len(values) || int64(len(values[i])) != d.Numel() {
			return status.Errorf(status.ErrInvalidTensorAddr, "want host data for %s: tilings read its values", d).On("input " + strconv.Itoa(i))
		}
		if r.values[i] != nil && slices.Equal(values[i], r.values[i]) {
			continue
		}
		first := r.values[i] == nil // they stay where they are, as many
		r.values[i] = append(r.values[i][:0], values[i]...)
		for _, x := range r.plan.readings {
			if x.input != i {
				continue
			}
			if r.current[x.kernel] = nil; first {
				r.problems[x.kernel].Values[x.value] = r.values[i][x.first : x.first+x.n]
			}
		}
	}
	return nil
}

// Tiling implements tiling.Source: it looks the tiling of kernel k up, locally,
// then globally, and computes it when it is nowhere.
func (r *Runner) Tiling(k int) ([]byte, kernel.Grid, error) {
	e, held := r.find(k)
	if !held {
		if err := r.fill(k, e); err != nil {
			return nil, kernel.Grid{}, r.plan.kernels[k].label.Place(err)
		}
		if r.plan.kernels[k].cacheable && r.env.LocalOn {
			r.local.Keep(e)
			r.current[k] = e
		}
	}
	return e.Bytes(), e.Grid, nil
}

// Tilable reports whether the host knows all values that the tiling of kernel k
// reads: not before the first launch, nor where the launch itself makes some.
func (r *Runner) Tilable(k int) bool {
	if r == nil || r.plan == nil || k < 0 || k >= len(r.plan.kernels) {
		return false
	}
	return !slices.ContainsFunc(r.problems[k].Values, func(v []int64) bool { return v == nil })
}

// find returns the entry that holds the tiling of kernel k, or one to fill.
func (r *Runner) find(k int) (*tilingcache.Entry, bool) {
	ks, values := &r.plan.kernels[k], r.problems[k].Values
	if !r.env.LocalOn || !ks.cacheable {
		return r.local.Spare(k, &ks.query, values), false
	}
	if h := r.env.Host; h != nil {
		h.Begin(device.LookupWork, ks.node.Kernel.Program())
		defer h.End(device.LookupWork)
	}
	e := r.current[k]
	if e == nil && ks.twin >= 0 && r.env.Host == nil {
		e = r.current[ks.twin] // stays as long as the values, which are the same
	}
	if e == nil {
		e = r.local.Find(k, &ks.query, values)
	}
	if e == nil {
		return r.local.Replace(k, &ks.query, values), false
	}
	r.current[k] = e
	r.tally.localHits++
	return e, true
}

// fill completes an entry from the global cache or by tiling.
func (r *Runner) fill(k int, e *tilingcache.Entry) error {
	ks := &r.plan.kernels[k]
	global := r.env.Global
	if !ks.cacheable {
		global = nil
	}
	if global != nil && global.Find(ks.node.Op, e) {
		r.tally.globalHits++
		return nil
	}
	if ks.cacheable && (r.env.LocalOn || global != nil) {
		r.tally.misses++
	}
	if err := r.tile(k, e); err != nil {
		return err
	}
	if global != nil {
		global.Store(ks.node.Op, e)
	}
	return nil
}

// tile computes the tiling of kernel k.
func (r *Runner) tile(k int, e *tilingcache.Entry) error {
	kern := r.plan.kernels[k].node.Kernel
	if h := r.env.Host; h != nil {
		h.Begin(device.TilingWork, kern.Program())
		defer h.End(device.TilingWork)
	}
	var err error
	if e.Grid, err = kern.Tile(&r.problems[k], e.Bytes()); err != nil {
		return err
	}
	r.tally.tilings++
	return nil
}

// unbind forgets all addresses, so that an idle runner keeps no memory alive,
// and its key: whoever takes the runner brings a plan.
func (r *Runner) unbind() {
	r.Forget()
	r.bound, r.resident = false, resident{}
	clear(r.in)
	clear(r.out)
	clear(r.buffers)
	clear(r.memory.Host)
	r.workspace, r.memory.Workspace = device.Buffer{}, device.Buffer{}
	r.retire()
	for k := range r.launches {
		r.launches[k].Scratch, r.launches[k].Tiling = device.Buffer{}, device.Buffer{}
	}
	for i := range r.foreign {
		f := &r.foreign[i]
		for _, ts := range [...][]device.Tensor{f.in, f.out} {
			for j := range ts {
				ts[j].Data, ts[j].Host = device.Buffer{}, nil
			}
		}
		f.scratch = device.Buffer{}
	}
}

// Close gives the runner's events back. The runner must not be used again.
func (r *Runner) Close() error {
	r.Discard()
	r.retire()
	var err error
	for _, e := range append(r.joins, r.fork, r.ready) {
		if e != nil {
			if cerr := e.Close(); err == nil {
				err = cerr
			}
		}
	}
	r.fork, r.joins, r.ready = nil, nil, nil
	return err
}
