package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device/cpu"
	"goatb/kernel"
	"goatb/mempool"
	"goatb/tiling/sink"
)

// graphs is the number of graphs, shortGraphs that of a short test.
const (
	graphs      = 200
	shortGraphs = 20
)

var modes = []struct {
	name string
	opts []cpu.Option
}{
	{"async", []cpu.Option{cpu.WithWorkers(2)}},
	{"inline", []cpu.Option{cpu.WithInline(), cpu.WithWorkers(2)}},
}

// trial is a recipe with its data and what should come out.
type trial struct {
	*recipe
	data [3]*dataset
	want [3][][]byte
	// again says that a second launch on what the first has left gives the same.
	again bool
}

// prepare draws the graph of a seed, two sets of data of one size and one of
// another, and computes the reference. Graphs whose numbers grow beyond their
// types, or vanish, say little: then the next sub-seed is drawn.
func prepare(t *testing.T, seed uint64, m kernel.Machine) *trial {
	t.Helper()
	for sub := range uint64(50) {
		x := &trial{recipe: draw(seed + sub<<32)}
		x.again = !x.kinds["ReshapeAndCache"]
		good := len(x.steps) <= 40
		for i := range x.data {
			n := int64(2 + seed%3)
			if i == 2 {
				n = maxRows
			}
			x.data[i] = x.dataset(n, uint64(i))
			if good {
				x.want[i] = reference(t, x.recipe, m, x.data[i])
				good = telling(x.want[i][len(x.outputs):], x.data[i].descs) && telling(x.want[i][:len(x.outputs)], x.outputDescs(n))
			}
		}
		if good {
			return x
		}
	}
	require.FailNow(t, "no graph with telling numbers", "seed %d", seed)
	return nil
}

// try runs a trial in every context of a rig, under each policy, with each set
// of data, in an order that changes, twice for each Setup: the second time with
// other data of the size at other addresses.
func (r *rig) try(x *trial) error {
	g, err := x.build(r.events)
	if err != nil {
		return fmt.Errorf("%s: %w", x, err)
	}
	defer g.Close()
	if x.seed%4 == 3 { // tilings that read values stay on the host and split the graph
		if err := g.SetOption(sink.OptionName, "0"); err != nil {
			return err
		}
	}
	r.counts = x.counts()
	if r.fresh != nil {
		r.fresh()
	}
	for i, c := range r.contexts {
		for p, policy := range r.policies {
			if err := c.SetPolicy(policy); err != nil {
				return err
			}
			if r.wrap != nil {
				r.wrap(c)
			}
			for k := range x.data {
				d := (i + p + k) % len(x.data)
				if err := r.run(c, g, x, d, true); err != nil {
					return fmt.Errorf("%s: %s, %s, data %d: %w", x, policy, r.names[i], d, err)
				}
				d = sameSize(d)
				if err := r.run(c, g, x, d, false); err != nil {
					return fmt.Errorf("%s: %s, %s, data %d without a setup: %w", x, policy, r.names[i], d, err)
				}
			}
		}
	}
	return nil
}

// sank checks that device-sink did what it is for in every form: graphs were
// captured, replayed with and without tilings on the device, and left to the host.
func (r *rig) sank(t *testing.T) {
	for i, c := range r.contexts {
		s := c.Stats()
		assert.Positive(t, s.Captures, r.names[i])
		if c.Config().SinkForm == sink.V2Form.String() {
			assert.Zero(t, s.Replays, r.names[i])
			continue
		}
		assert.Greater(t, s.Replays, s.Captures, r.names[i])
		assert.Positive(t, s.DeviceTilings, r.names[i])
		assert.Positive(t, s.Fallbacks, r.names[i])
	}
}

// sameSize is a set of data for the Setup of another one.
func sameSize(set int) int {
	if set < 2 {
		return 1 - set
	}
	return set
}

func TestGraphsGiveTheSameBits(t *testing.T) {
	n := uint64(graphs)
	if testing.Short() {
		n = shortGraphs
	}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			dev := openCPU(t, mode.opts...)
			r := newRig(t, dev, mempool.SolverTypes)
			m := kernel.MachineOf(dev.Props())
			for seed := range n {
				if r.free(); seed%3 > 0 {
					r.hold(t, int(seed%3-1)) // one stream, or the other
				}
				require.NoError(t, r.try(prepare(t, seed, m)))
			}
			r.sank(t)
		})
	}
}

// The graphs are what they are meant to be: of many kinds, with views, nodes in
// place, graphs inside, events, and every other one is built out of order.
func TestWhatIsDrawn(t *testing.T) {
	kinds := map[string]int{}
	var events, views, inPlace, nested, shuffled int
	m := kernel.MachineOf(openCPU(t, cpu.WithWorkers(2)).Props())
	n := uint64(shortGraphs)
	for seed := range n {
		x := prepare(t, seed, m)
		assert.GreaterOrEqual(t, len(x.steps), 8, "%s", x)
		assert.LessOrEqual(t, len(x.steps), 40, "%s", x)
		for k := range x.kinds {
			kinds[k]++
		}
		events += min(x.events, 1)
		views += min(x.views, 1)
		inPlace += min(x.inPlace, 1)
		if x.kinds["graph"] {
			nested++
		}
		if x.named && !slices.IsSorted(x.shuffled(rand.New(rand.NewPCG(x.seed, 3)))) {
			shuffled++
		}
	}
	assert.GreaterOrEqual(t, len(kinds), 14, "%v", kinds)
	for what, count := range map[string]int{"events": events, "views": views, "in place": inPlace, "graphs inside": nested} {
		assert.Greater(t, count, int(n)/2, what)
	}
	assert.EqualValues(t, n/2, shuffled, "graphs built from names in another order")
}
