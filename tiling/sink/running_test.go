package sink

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

type countParams struct{ N int64 }

type countTiling struct{ Sum int64 }

// counting is a kernel whose tiling sums the value up that it reads.
func counting(on kernel.Placement, fail error) *kernel.Kernel {
	return kernel.Define(kernel.Def[countParams, countTiling]{
		Name: "count/go", TileOn: on,
		Scratch: func(_ *kernel.Problem, a countParams) int64 { return a.N * 100 },
		Tail:    func(_ *kernel.Problem, a countParams) int { return int(a.N) },
		Tile: func(p *kernel.Problem, a countParams, t *countTiling, tail []int64) (kernel.Grid, error) {
			if fail != nil {
				return kernel.Grid{}, fail
			}
			copy(tail, p.Values[0])
			for _, v := range p.Values[0] {
				t.Sum += v
			}
			return kernel.Grid{Key: uint64(t.Sum), Blocks: int(a.N)}, nil
		},
		Run: func(*kernel.Args, int, *countTiling, []int64) error { return nil },
	})
}

func countProblem(n int64) *kernel.Problem {
	return &kernel.Problem{Params: countParams{n}, Val: []tensor.Desc{tensor.Of(tensor.Int32, n)}, Machine: *platform}
}

func TestResources(t *testing.T) {
	o := reading(1, Outside)
	o.Registration.Depends = 1<<2 | 1<<5 | 1<<63
	r := must(ResourcesOf(&o))(t)
	assert.Equal(t, Resources{
		Streams: []StreamInfo{{Name: "tiling", Depends: []int{2, 5, 63}, Required: true}},
		Syncs:   []SyncInfo{{Type: "EVENT", Name: "tiling"}},
	}, r)
	assert.Equal(t, "tiling_stream_7", r.Streams[0].Key(7))
	assert.Equal(t, "_attached_stream_info_list=[{tiling  [2 5 63] true}] _attached_sync_res_info_list=[{EVENT tiling }]", r.String())
	for want, change := range map[string]func(*Op){
		"want a registration of its tiling":          func(o *Op) { o.Registration = nil },
		"want a tiling function on the device":       func(o *Op) { o.Registration.Function = "" },
		"want inputs whose values its tiling reads,": func(o *Op) { o.Registration.Depends = 0 },
	} {
		o := reading(1, Outside)
		change(&o)
		_, err := ResourcesOf(&o)
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, "Paged: calc: layer/paged: "+want)
	}
}

func TestPreTile(t *testing.T) {
	o, k := reading(1, Outside), counting(0, nil)
	p := countProblem(3)
	b := must(PreTile(&o, k, p, nil))(t)
	assert.Equal(t, &Before{Workspaces: []int64{300}, Data: make([]byte, 32), BlockDim: 3}, b, "with no values: zeros")
	assert.Nil(t, p.Values, "the problem stays as it is")
	p.Values = [][]int64{{1, 2, 3}}
	known := must(PreTile(&o, k, p, nil))(t)
	assert.Equal(t, uint64(6), known.Key)
	assert.Equal(t, b.Workspaces, known.Workspaces, "a bound, whatever the values")
	assert.Same(t, b, must(PreTile(&o, k, p, b))(t), "a tiling that is there already is used again")
}

func TestPreTileErrors(t *testing.T) {
	o := reading(1, Outside)
	fail := status.Errorf(status.ErrInvalidTensorSize, "cannot be cut")
	_, err := PreTile(&o, counting(0, fail), countProblem(3), nil)
	require.ErrorIs(t, err, status.ErrInvalidTensorSize, "the tiling's own code")
	assert.ErrorContains(t, err, "Paged: calc: layer/paged: cannot be cut")
	_, err = PreTile(&o, counting(0, fmt.Errorf("plain")), countProblem(3), nil)
	require.ErrorIs(t, err, status.ErrInternal)
	p := countProblem(3)
	p.Machine.Cores = 0
	_, err = PreTile(&o, counting(0, nil), p, nil)
	require.ErrorIs(t, err, status.ErrInternal)
	assert.ErrorContains(t, err, "want the platform's number of cores, got 0")
	p = countProblem(3)
	p.Val = nil
	_, err = PreTile(&o, counting(0, nil), p, nil)
	require.ErrorIs(t, err, status.ErrInternal)
	assert.ErrorContains(t, err, "Paged: calc: layer/paged: tiling on the host panicked")
}

func TestWorkspaces(t *testing.T) {
	o := reading(1, Outside)
	b := &Before{Workspaces: []int64{300, 7}}
	assert.Equal(t, []Workspace{{Size: 300}, {Size: 7}}, b.Plan(&o))
	assert.Empty(t, (&Before{}).Plan(&o), "none is legal")
	log := Workspace{Size: 20480, Log: true}
	o.Custom = true
	assert.Equal(t, []Workspace{{Size: 300}, {Size: 7}, log}, b.Plan(&o))
	o.Custom, o.Package = false, "other/package"
	assert.Equal(t, []Workspace{log}, (&Before{}).Plan(&o))
}

func TestAssign(t *testing.T) {
	// 0 plain, 1 reads 0, 2 reads 1 (sunk itself), 3 on main stream 1 reads 0 and 2,
	// 4 reads a value from outside and one of 3 twice.
	ops := []Op{plain(10), reading(11, 0), reading(12, 1), reading(13, 0), reading(14, Outside)}
	ops[3].Stream = 1
	ops[3].Inputs = append(ops[3].Inputs, Input{Declared: 1, Producer: 2})
	ops[4].Inputs = append(ops[4].Inputs, Input{Declared: 1, Producer: 3}, Input{Declared: 1, Producer: 3}, Input{Declared: 1, Const: true, Producer: 0}, Input{Declared: 0, Producer: 2})
	a := must(Assign(ops, marked(t, ops), 2, 0))(t)
	assert.Equal(t, &Assignment{
		Streams: []string{"main", "main", "tiling", "tiling"}, Events: 11,
		Attached: []int{None, 2, 2, 3, 2}, Event: []int{None, 0, 2, 4, 7},
		Waits: []Edge{
			{1, 0, 0, 1, 2},
			{3, 1, 0, 2, 2}, // the kernel of a sunk producer, not only its tiling
			{5, 0, 0, 3, 3}, {6, 2, 0, 3, 3},
			{8, 3, 1, 4, 2},
		},
		Joins: []Edge{{9, 4, 2, End, 0}, {10, 3, 3, End, 0}},
		Main:  0,
	}, a)
}

func TestAssignWithoutSunkOperations(t *testing.T) {
	ops := []Op{plain(1), plain(2)}
	a := must(Assign(ops, marked(t, ops), 1, 0))(t)
	assert.Equal(t, &Assignment{Streams: []string{"main"}, Attached: []int{None, None}, Event: []int{None, None}}, a)
}

func TestAssignErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func([]Op)
		code   status.Code
		want   string
	}{
		{"producer behind", func(ops []Op) { ops[1].Inputs[1].Producer = 1 }, status.ErrInvalidGraph, "layer/paged: input 1: want a producer before operation 1, got 1"},
		{"producer unknown", func(ops []Op) { ops[1].Inputs[1].Producer = -2 }, status.ErrInvalidGraph, "got -2"},
		{"stream", func(ops []Op) { ops[0].Stream = 1 }, status.ErrInvalidStream, "layer/add: want a main stream from 0 to 0, got 1"},
		{"no registration", func(ops []Op) { ops[1].Registration = nil }, status.ErrInvalidParam, "layer/paged: want a registration"},
		{"never times out", func(ops []Op) { ops[1].NeverTimeout = true }, status.ErrInvalidParam, "never times out"},
	} {
		ops := []Op{plain(1), reading(2, 0)}
		marks := marked(t, ops)
		tt.change(ops)
		_, err := Assign(ops, marks, 1, 0)
		require.ErrorIs(t, err, tt.code, tt.name)
		assert.ErrorContains(t, err, tt.want, tt.name)
	}
	_, err := Assign(nil, nil, 1, 1)
	assert.ErrorIs(t, err, status.ErrInvalidStream)
}
