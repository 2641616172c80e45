package load

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
	"goatb/tiling/sink/image"
)

const count = 4

type params struct{ Start int64 }

type sum struct{ Sum int64 }

// adder sums its values in its tiling, with the parity as tiling key and the
// first value as block dim. Each block b stores sum + 1000*key + b; a sum that
// is too large cannot be tiled.
var adder = kernel.Define(kernel.Def[params, sum]{
	Name: "adder/go", TileOn: kernel.OnHost | kernel.OnAICPU,
	Scratch: func(*kernel.Problem, params) int64 { return 64 },
	Tile: func(p *kernel.Problem, a params, t *sum, _ []int64) (kernel.Grid, error) {
		t.Sum = a.Start
		for _, v := range p.Values[0] {
			t.Sum += v
		}
		if t.Sum > 100000 {
			return kernel.Grid{}, status.Errorf(status.ErrInvalidParam, "sum %d is too large", t.Sum)
		}
		return kernel.Grid{Key: uint64(t.Sum & 1), Blocks: int(min(max(p.Values[0][0], 1), count))}, nil
	},
	Run: func(a *kernel.Args, block int, t *sum, _ []int64) error {
		device.View[int64](a.Mem(0))[block] = t.Sum + int64(a.Key)*1000 + int64(block)
		return nil
	},
})

// copier moves values, so that what a tiling reads is made on the device.
var copier = kernel.Define(kernel.Def[struct{}, sum]{
	Name: "copier/go",
	Tile: func(*kernel.Problem, struct{}, *sum, []int64) (kernel.Grid, error) {
		return kernel.Grid{Blocks: 1}, nil
	},
	Run: func(a *kernel.Args, _ int, _ *sum, _ []int64) error {
		copy(a.Mem(1), a.Mem(0))
		return nil
	},
})

var values = tensor.Of(tensor.Int32, count)

func input(i int) device.Address {
	return device.Address{Type: device.InputMemory, Index: i, Size: values.Bytes()}
}

func output(i int) device.Address {
	return device.Address{Type: device.OutputMemory, Index: i, Size: 8 * count}
}

// made is where operation 1 stores the values that operation 2 reads.
var made = device.Address{Type: device.WorkspaceMemory, Size: values.Bytes()}

func adderProblem(start int64) *kernel.Problem {
	return &kernel.Problem{
		Val: []tensor.Desc{values}, Out: []tensor.Desc{tensor.Of(tensor.Int64, count)}, Params: params{start}, Machine: kernel.Machine{Cores: 2},
	}
}

// sunk is an operation whose tiling reads `from`, and what it becomes.
func sunk(t testing.TB, id int64, name string, producer int, from, to device.Address) (sink.Op, *Operation) {
	p := adderProblem(id * 10)
	reg, err := sink.RegistrationOf(adder, 0, 1)
	require.NoError(t, err)
	o := sink.Op{
		ID: id, Type: "Adder", Name: name, CompileInfo: "{}", Registration: reg, Fusion: sink.Fusion{Supported: true},
		Inputs: []sink.Input{{Declared: 0, Producer: producer}},
	}
	before, err := sink.PreTile(&o, adder, p, nil)
	require.NoError(t, err)
	spec, err := image.FromKernel(name, adder, p)
	require.NoError(t, err)
	prog := adder.Program()
	return o, &Operation{
		Label: &device.Label{Op: "graph", Node: name, Kernel: adder.Name()},
		Kernels: []device.Kernel{{
			Program: prog, Operands: []device.Address{to},
			Scratch: device.Address{Type: device.WorkspaceMemory, Off: 64, Size: 64},
		}},
		Sunk: &Sunk{
			Spec: spec, Values: []device.Address{from}, DataBytes: int64(len(before.Data)),
			Binary: &device.Binary{Name: adder.Name(), Variants: []device.Variant{{Key: 0, Program: prog}, {Key: 1, Program: prog}}},
		},
	}
}

// graph is operation 1, which makes values on the device, operation 2, which is
// tiled from them, and operation 3, which is tiled from values of the caller.
type graph struct {
	captured sink.Captured
	ops      map[int64]*Operation
	assigned *sink.Assignment
}

func newGraph(t testing.TB, kind sink.TaskKind) *graph {
	g := &graph{ops: map[int64]*Operation{}}
	copying := sink.Op{ID: 1, Type: "Copy", Name: "copy", Fusion: sink.Fusion{Supported: true}, Inputs: []sink.Input{{Producer: sink.Outside}}}
	g.ops[1] = &Operation{
		Label:   &device.Label{Op: "graph", Node: "copy"},
		Kernels: []device.Kernel{{Program: copier.Program(), Blocks: 1, Operands: []device.Address{input(0), made}, Inputs: 1, Inline: make([]byte, 8)}},
	}
	second, op2 := sunk(t, 2, "second", 0, made, output(0))
	third, op3 := sunk(t, 3, "third", sink.Outside, input(1), output(1))
	g.ops[2], g.ops[3] = op2, op3
	g.captured.Ops = []sink.Op{copying, second, third}
	build := &sink.Build{Option: sink.Choice{On: true, Level: "session"}, Capable: func() (string, error) { return "", nil }}
	var err error
	g.captured.Marks, err = build.Judge(g.captured.Ops)
	require.NoError(t, err)
	g.assigned, err = sink.Assign(g.captured.Ops, g.captured.Marks, 1, 0)
	require.NoError(t, err)
	for i := range g.captured.Ops {
		task := sink.Task{Kind: kind, Op: g.captured.Ops[i].ID, Args: sink.KernelArgs(1, 1), BlockDim: 1}
		if kind == sink.FFTSPlusTask {
			task.Contexts, task.Args = []sink.Context{{OpType: "MIX_AIC", Args: task.Args}}, ""
		}
		g.captured.Tasks = append(g.captured.Tasks, []sink.Task{task})
	}
	g.captured.Workspaces = make([][]sink.Workspace, len(g.captured.Ops))
	return g
}

// list generates and loads the graph's list.
func (g *graph) list(t testing.TB, nops int, alloc func(int64) (device.Buffer, error)) *Loaded {
	l, err := g.load(t, nops, alloc)
	require.NoError(t, err)
	return l
}

func (g *graph) load(t testing.TB, nops int, alloc func(int64) (device.Buffer, error)) (*Loaded, error) {
	m := kernel.Machine{Cores: 2}
	l, err := sink.Generate(&g.captured, g.assigned, &sink.Profile{Name: "cpu", Sinks: true, Prefetch: nops}, &m)
	require.NoError(t, err)
	fns, err := image.NewFunctions(adder)
	require.NoError(t, err)
	return List("graph", l, g.ops, fns, m, alloc)
}

// forms are the graph in each form that patches kernels on the device.
func forms() map[string]func(t testing.TB) *graph {
	return map[string]func(t testing.TB) *graph{
		"update": func(t testing.TB) *graph { return newGraph(t, sink.AllKernelTask) },
		"vector": func(t testing.TB) *graph { return newGraph(t, sink.VectorAllKernelTask) },
		"ffts":   func(t testing.TB) *graph { return newGraph(t, sink.FFTSPlusTask) },
		"custom": func(t testing.TB) *graph {
			g := newGraph(t, sink.AllKernelTask)
			g.captured.Ops[1].Custom = true
			g.captured.Workspaces[1] = []sink.Workspace{{Size: 64}, {Size: 64, Log: true}}
			g.ops[2].Sunk.Log = device.Address{Type: device.WorkspaceMemory, Off: 128, Size: 64}
			return g
		},
		"super kernel": func(t testing.TB) *graph {
			g := newGraph(t, sink.KernelTask)
			for i := 1; i <= 2; i++ {
				g.captured.Ops[i].Fusion.Scope = "fused"
			}
			g.captured.Supers = []sink.SuperKernel{{Op: 99, Name: "fused"}}
			g.ops[99] = &Operation{Label: &device.Label{Op: "graph", Node: "fused"}}
			return g
		},
	}
}
