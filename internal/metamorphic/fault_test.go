package metamorphic

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel"
	"goatb/operation"
	"goatb/tiling"
)

// layer is a device whose streams do wrong what a fault says.
type layer struct {
	device.Device
	// rewrite may change a launch; waits for dropped are left out.
	rewrite func(l *device.Launch)
	dropped device.Event
}

// NewStream makes a stream of the layer.
func (d *layer) NewStream() (device.Stream, error) {
	s, err := d.Device.NewStream()
	return &faulty{s, d}, err
}

type faulty struct {
	device.Stream
	layer *layer
}

func (s *faulty) Launch(l *device.Launch) error {
	if s.layer.rewrite == nil {
		return s.Stream.Launch(l)
	}
	other := *l
	s.layer.rewrite(&other)
	return s.Stream.Launch(&other)
}

func (s *faulty) Wait(e device.Event) error {
	if e == s.layer.dropped {
		return nil
	}
	return s.Stream.Wait(e)
}

// frozen is a policy under which a tiling, once computed, is used again for every
// launch with the same key.
type frozen struct {
	tiling.Policy
	key  func(l *device.Launch) any
	seen map[any]tiled
}

type tiled struct {
	bytes []byte
	grid  kernel.Grid
}

// Begin lets the launch's tilings come from what was seen.
func (p *frozen) Begin(j *tiling.Job) error {
	j.Source = &frozenSource{p, j, inner(j.Source)}
	return p.Policy.Begin(j)
}

// inner is the runner's own source.
func inner(s tiling.Source) tiling.Source {
	if f, ok := s.(*frozenSource); ok {
		return f.source
	}
	return s
}

type frozenSource struct {
	policy *frozen
	job    *tiling.Job
	source tiling.Source
}

// Tiling implements tiling.Source.
func (s *frozenSource) Tiling(k int) ([]byte, kernel.Grid, error) {
	b, g, err := s.source.Tiling(k)
	if err != nil {
		return nil, g, err
	}
	key := s.policy.key(&s.job.Launches[k])
	old, ok := s.policy.seen[key]
	if !ok || len(old.bytes) != len(b) {
		old = tiled{slices.Clone(b), g}
		s.policy.seen[key] = old
	}
	return old.bytes, old.grid, nil
}

// nodeName names a kernel of an operation whatever it was planned for.
type nodeName struct{ op, node, kernel string }

// fault is something wrong that the test has to find.
type fault struct {
	name string
	make func(t *testing.T, d *layer, r *rig)
}

var faults = []fault{
	{"none", func(*testing.T, *layer, *rig) {}},
	{"address refresh skipped", func(_ *testing.T, d *layer, _ *rig) {
		first := map[*device.Label]device.Buffer{} // floats at all kernels here: no check of indices helps
		d.rewrite = func(l *device.Launch) {
			buffers := slices.Clone(l.Buffers)
			if old, ok := first[l.Label]; ok {
				buffers[0] = old
			}
			first[l.Label], l.Buffers = buffers[0], buffers
		}
	}},
	{"host values ignored", func(_ *testing.T, _ *layer, r *rig) {
		r.freeze(func(l *device.Launch) any { return l.Label })
	}},
	{"stale tiling", func(_ *testing.T, _ *layer, r *rig) {
		r.freeze(func(l *device.Launch) any { return nodeName{l.Label.Op, l.Label.Node, l.Label.Kernel} })
	}},
	{"a live interval reused", func(_ *testing.T, d *layer, r *rig) {
		var ws device.Buffer
		var m move
		r.before = func(op *operation.Op, w device.Buffer) { ws, m = w, reuse(op) }
		d.rewrite = func(l *device.Launch) {
			buffers := slices.Clone(l.Buffers)
			for i, b := range buffers {
				if at := b.Offset() - ws.Offset(); b.Allocation() == ws.Allocation() && at >= m.from && at < m.from+m.size {
					buffers[i] = ws.At(at-m.from+m.to, b.Size())
				}
			}
			l.Buffers = buffers
		}
	}},
	{"an event wait dropped", func(t *testing.T, d *layer, r *rig) { r.hold(t, 1); d.dropped = r.events[0] }},
	{"a held stream alone", func(t *testing.T, d *layer, r *rig) { r.hold(t, 1) }},
}

// move is a part of the workspace that moves elsewhere.
type move struct{ from, to, size int64 }

// reuse puts a temporary of an operation where another one lives, which was
// written before and is read later. Size is 0 where there are no such two.
func reuse(op *operation.Op) move {
	w, tensors := op.Workspace(), op.Graph().Tensors
	for _, old := range w.Lives {
		for _, l := range w.Lives {
			m := move{w.Offset[l.Ref], w.Offset[old.Ref], tensors[l.Ref].Desc.Bytes()}
			if old.First < l.First && l.First < old.Last && m.to+m.size <= w.Size {
				return m
			}
		}
	}
	return move{}
}

// freeze puts a policy around that of every context's launches.
func (r *rig) freeze(key func(*device.Launch) any) {
	seen := map[any]tiled{}
	r.wrap = func(c *atbctx.Context) {
		c.Env().Policy = &frozen{c.Env().Policy, key, seen}
	}
	r.fresh = func() { clear(seen) }
}

// Each seeded fault makes the test find other bits, under each policy alone;
// without one, it passes through the same layers.
func TestFaultsAreFound(t *testing.T) {
	for _, f := range faults {
		for _, mode := range modes {
			for _, policy := range policies {
				t.Run(f.name+"/"+mode.name+"/"+policy, func(t *testing.T) {
					d := &layer{Device: openCPU(t, mode.opts...)}
					r := newRig(t, d, 1)
					r.policies = []string{policy}
					f.make(t, d, r)
					differ, fail := r.count(t, 10)
					t.Logf("%d graphs of 10 differ, %d fail", differ, fail)
					if f.name == "none" || f.name == "a held stream alone" {
						assert.Zero(t, differ+fail)
					} else {
						assert.Positive(t, differ, "graphs of 10 that find it")
					}
				})
			}
		}
	}
}

// count tries the first n graphs and counts those that differ and those that
// fail in another way, as where an operation refuses indices.
func (r *rig) count(t *testing.T, n uint64) (differ, fail int) {
	t.Helper()
	for seed := range n {
		switch err := r.try(prepare(t, seed, kernel.MachineOf(r.dev.Props()))); {
		case errors.Is(err, errDiffers):
			differ++
		case err != nil:
			fail++
			t.Log(err)
		}
	}
	return differ, fail
}
