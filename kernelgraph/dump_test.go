package kernelgraph_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernelgraph"
)

func TestDumps(t *testing.T) {
	b := newBuilder([]int64{600}, []int64{600})
	s := b.Scope("inner", "Op", nil, nil, 1)
	tmp := s.Temp("t", bytes(600))
	require.NoError(t, s.Kernel(kernelgraph.Call{Name: "scratchy", Table: kernelOf("test/scratch", false, 70), Params: none{}, In: refs{b.In(0)}, Out: refs{tmp}}))
	s.Record("e")
	b.Wait("e")
	call(t, b, plain, refs{tmp, kernelgraph.Absent}, refs{b.Out(0)})
	g := build(t, b)
	w := plan(t, g, kernelgraph.WorkspaceOptions{Solver: 4})
	var text strings.Builder
	require.NoError(t, g.WriteText(&text, w))
	assert.Equal(t, `0 inner/scratchy: test/scratch(in0) -> inner/t stream 1 scratch 70
1 inner/record: record() ->  stream 1
2 wait: wait() -> 
3 k: test/plain(inner/t, -) -> out0
workspace 1536 = scratch 512 + intermediates 1024 (lower bound 1024, by largest-first), most live at node 0 inner/scratchy
  inner/t int8[600] nodes 0..3 at 512
`, text.String())
	text.Reset()
	require.NoError(t, g.WriteDot(&text))
	for _, want := range []string{"in0 -> n0", "n0 -> n3", "n3 -> out0", "digraph"} {
		assert.Contains(t, text.String(), want)
	}
}
