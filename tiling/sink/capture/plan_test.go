package capture_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
	"goatb/tiling/sink/sinktest"
)

// A plan has a mark, a segment and a tiling for everybody who needs one.
func TestPlan(t *testing.T) {
	p, err := capture.New(sinktest.Graph(), sinktest.Settings(sink.UpdateForm))
	require.NoError(t, err)
	assert.Equal(t, int64(3), p.HostTilings)
	assert.Equal(t, []sink.Mark{
		{}, {Depends: true, Sunk: true}, {Unknown: true, Reason: "it calls a user's own operation"}, {Depends: true, Sunk: true},
	}, p.Marks)
	var got []sink.Segment
	for _, s := range p.Segments {
		got = append(got, s.Segment)
		assert.Equal(t, s.Host, s.List == nil)
	}
	assert.Equal(t, []sink.Segment{{First: 0, Last: 1}, {First: 2, Last: 2, Host: true}, {First: 3, Last: 3}}, got)
	assert.Nil(t, p.Before[2])
	assert.Equal(t, uint64(21&1), p.Before[3].Key, "planned with zeros")
	assert.Nil(t, p.Wired)
	kinds := map[sink.TaskKind]int{}
	for _, task := range p.Segments[0].List.Tasks {
		kinds[task.Kind]++
	}
	assert.Equal(t, 8, kinds[sink.NopTask])
	assert.Equal(t, 1, kinds[sink.UpdateTask])
	assert.Equal(t, 1, kinds[sink.PreprocessTask])
}

// Form v2 wires constants and tilings on the host, without nodes that are no
// kernels.
func TestPlanOfFormV2(t *testing.T) {
	p, err := capture.New(sinktest.Graph(), sinktest.Settings(sink.V2Form))
	require.NoError(t, err)
	assert.Empty(t, p.Segments)
	assert.Len(t, p.Wired.Ops, 3)
	kinds := map[sink.NodeKind]int{}
	for _, n := range p.Wired.Nodes {
		kinds[n.Kind]++
	}
	assert.Equal(t, map[sink.NodeKind]int{sink.BinaryNode: 3, sink.ConstNode: 1, sink.HostTilingNode: 2, sink.LaunchNode: 3}, kinds)
	again := *p
	require.NoError(t, again.Wire())
	assert.Equal(t, p.Wired, again.Wired)
}

// A kernel without placement on the device splits the graph.
func TestPlanSplitsAtGates(t *testing.T) {
	nodes := sinktest.Graph()
	nodes[1] = sinktest.Adding("first", sinktest.Hosted, 10, 1)
	p, err := capture.New(nodes, sinktest.Settings(sink.UpdateForm))
	require.NoError(t, err)
	assert.Len(t, p.Segments, 4)
	assert.Equal(t, sink.OperatorGate, p.Marks[1].Gate)
	assert.Nil(t, p.Before[1], "it is tiled at every launch")
	s := sinktest.Settings(sink.UpdateForm)
	s.Build.Require = true
	_, err = capture.New(nodes, s)
	assert.ErrorContains(t, err, "hosted/go: gate: first: its tiling must run on the device and does not")
}

// Records and waits inside a segment become tasks; a pair that the host splits
// orders nothing, since segments run one after the other.
func TestPairs(t *testing.T) {
	record := capture.Node{Label: &device.Label{Op: "graph", Node: "record"}, Pair: 1}
	wait := capture.Node{Label: &device.Label{Op: "graph", Node: "wait"}, Pair: 1, Waits: true, Stream: 1}
	g := sinktest.Graph()
	s := sinktest.Settings(sink.UpdateForm)
	s.Streams = 2
	events := func(nodes ...capture.Node) (records, waits int) {
		p, err := capture.New(nodes, s)
		require.NoError(t, err)
		for _, seg := range p.Segments {
			if seg.List == nil {
				continue
			}
			for _, task := range seg.List.Tasks {
				switch {
				case task.Kind == sink.RecordTask && p.Ops[task.Op].Name == "record":
					records++
				case task.Kind == sink.WaitTask && p.Ops[task.Op].Name == "wait":
					waits++
					assert.Equal(t, 1, task.Stream)
				}
			}
		}
		return records, waits
	}
	second := g[3]
	second.Stream = 1
	records, waits := events(g[0], record, wait, second)
	assert.Equal(t, [2]int{1, 1}, [2]int{records, waits})
	records, waits = events(g[0], record, g[2], wait, second)
	assert.Equal(t, [2]int{0, 0}, [2]int{records, waits})
}

// Errors of planning name the node.
func TestPlanErrors(t *testing.T) {
	lost := errors.New("no tiling")
	failing := kernel.Define(kernel.Def[struct{}, sinktest.Total]{
		Name: "failing/go",
		Tile: func(*kernel.Problem, struct{}, *sinktest.Total, []int64) (kernel.Grid, error) {
			return kernel.Grid{}, lost
		},
		Run: func(*kernel.Args, int, *sinktest.Total, []int64) error { return nil },
	})
	for _, form := range sink.Forms() {
		nodes := sinktest.Graph()
		nodes[0].Kernel, nodes[0].Label = failing, sinktest.Label("double", failing)
		_, err := capture.New(nodes, sinktest.Settings(form))
		require.ErrorIs(t, err, lost)
		assert.ErrorContains(t, err, "failing/go: calc: double", form.String())
	}
	s := sinktest.Settings(sink.UpdateForm)
	s.Soc.Prefetch = sink.NoPrefetch
	_, err := capture.New(sinktest.Graph(), s)
	assert.ErrorContains(t, err, "want a prefetch number")
	nodes := sinktest.Graph()
	nodes[3].Stream = 4
	_, err = capture.New(nodes, sinktest.Settings(sink.UpdateForm))
	assert.ErrorIs(t, err, status.ErrInvalidStream)
	cores := sinktest.Graph()
	cores[0].Problem.Machine.Cores = 0
	_, err = capture.New(cores, sinktest.Settings(sink.UpdateForm))
	assert.ErrorIs(t, err, status.ErrInternal)
}
