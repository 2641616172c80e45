package metamorphic

import (
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
	// rewrite may change a launch; dropWaits leaves every wait out.
	rewrite   func(l *device.Launch)
	dropWaits bool
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
	if s.layer.dropWaits {
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
		old = tiled{append([]byte(nil), b...), g}
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
		first := map[*device.Label][]device.Buffer{}
		d.rewrite = func(l *device.Launch) {
			if old := first[l.Label]; old != nil {
				l.Buffers = old
			} else {
				first[l.Label] = append([]device.Buffer(nil), l.Buffers...)
			}
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
		var scratch int64
		r.before = func(op *operation.Op, w device.Buffer) { ws, scratch = w, op.Workspace().Scratch }
		d.rewrite = func(l *device.Launch) {
			buffers := append([]device.Buffer(nil), l.Buffers...)
			for i, b := range buffers {
				if at := b.Offset() - ws.Offset() - scratch; b.Allocation() == ws.Allocation() && at >= 512 {
					buffers[i] = ws.At(scratch+at%512, b.Size()) // where another one lies
				}
			}
			l.Buffers = buffers
		}
	}},
	{"an event wait dropped", func(t *testing.T, d *layer, r *rig) { r.hold(t, 0); d.dropWaits = true }},
	{"a held stream alone", func(t *testing.T, d *layer, r *rig) { r.hold(t, 0) }},
}

// freeze puts a policy around that of every context's launches.
func (r *rig) freeze(key func(*device.Launch) any) {
	seen := map[any]tiled{}
	r.wrap = func(c *atbctx.Context) {
		c.Env().Policy = &frozen{c.Env().Policy, key, seen}
	}
	r.fresh = func() { clear(seen) }
}

// Each seeded fault makes the test fail; without one, it passes through the same
// layers.
func TestFaultsAreFound(t *testing.T) {
	for _, f := range faults {
		for _, mode := range modes {
			t.Run(f.name+"/"+mode.name, func(t *testing.T) {
				d := &layer{Device: openCPU(t, mode.opts...)}
				r := newRig(t, d, 1)
				f.make(t, d, r)
				found := 0
				for seed := range uint64(10) {
					if err := r.try(prepare(t, seed, kernel.MachineOf(d.Props()))); err != nil {
						found++
					}
				}
				if f.name == "none" || f.name == "a held stream alone" {
					assert.Zero(t, found)
				} else {
					assert.Positive(t, found, "graphs of 10 that find it")
				}
				t.Logf("found by %d graphs of 10", found)
			})
		}
	}
}
