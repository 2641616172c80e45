// Package sinktest has kernels and a planned graph for tests of capturing: one
// kernel whose tiling reads nothing, kernels whose tilings read values and may run
// on the device, and a node that the host does in the middle.
package sinktest

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// Count is the number of values and of elements.
const Count = 4

// Machine is what graphs are planned for.
func Machine() kernel.Machine { return kernel.Machine{Cores: 2} }

// Params are those of Adder and Hosted.
type Params struct{ Start int64 }

// Total is the tiling of all kernels.
type Total struct{ Sum int64 }

// Adder stores Start and the sum of its values, plus 1000 where that is odd, in
// every element; its tiling may run on the device.
var Adder = kernel.Define(kernel.Def[Params, Total]{
	Name: "adder/go", TileOn: kernel.OnHost | kernel.OnAICPU, Keys: 2,
	Scratch: func(*kernel.Problem, Params) int64 { return 64 },
	Tile: func(p *kernel.Problem, a Params, t *Total, _ []int64) (kernel.Grid, error) {
		t.Sum = a.Start
		for _, v := range p.Values[0] {
			t.Sum += v
		}
		return kernel.Grid{Key: uint64(t.Sum & 1), Blocks: 1}, nil
	},
	Run: func(a *kernel.Args, _ int, t *Total, _ []int64) error {
		out := device.View[int64](a.Mem(0))
		for i := range out {
			out[i] = t.Sum + 1000*int64(a.Key)
		}
		return nil
	},
})

// Doubler doubles an input. Its tiling reads no values.
var Doubler = kernel.Define(kernel.Def[struct{}, Total]{
	Name: "doubler/go",
	Tile: func(_ *kernel.Problem, _ struct{}, t *Total, _ []int64) (kernel.Grid, error) {
		t.Sum = 7
		return kernel.Grid{Blocks: 1}, nil
	},
	Run: func(a *kernel.Args, _ int, _ *Total, _ []int64) error {
		in, out := device.View[int64](a.Mem(0)), device.View[int64](a.Mem(1))
		for i := range out {
			out[i] = 2 * in[i]
		}
		return nil
	},
})

// Hosted is Adder with a tiling that runs on the host alone.
var Hosted = kernel.Define(kernel.Def[Params, Total]{
	Name: "hosted/go",
	Tile: func(*kernel.Problem, Params, *Total, []int64) (kernel.Grid, error) {
		return kernel.Grid{Blocks: 1}, nil
	},
	Run: func(*kernel.Args, int, *Total, []int64) error { return nil },
})

// Label names a node of a graph that is called "graph".
func Label(name string, k *kernel.Kernel) *device.Label {
	return &device.Label{Op: "graph", Node: name, Kernel: k.Name()}
}

func at(t device.MemoryType, i int) device.Address {
	return device.Address{Type: t, Index: i, Size: 8 * Count}
}

// Adding is a node whose kernel, Adder or Hosted, stores to an output; its tiling
// reads the values of input 1.
func Adding(name string, k *kernel.Kernel, start int64, out int) capture.Node {
	return capture.Node{
		Label: Label(name, k), Kernel: k, Operands: []device.Address{at(device.OutputMemory, out)},
		Scratch: device.Address{Type: device.WorkspaceMemory, Size: 64},
		Problem: &kernel.Problem{
			Val: []tensor.Desc{tensor.Of(tensor.Int32, Count)}, Out: []tensor.Desc{tensor.Of(tensor.Int64, Count)},
			Params: Params{start}, Machine: Machine(),
		},
		Values: []capture.Value{{Input: 1, Size: 4 * Count}},
	}
}

// Graph doubles input 0 to output 0, adds 10 and the values of input 1 to output 1,
// leaves a node to the host, and adds 21 and the values to output 2.
func Graph() []capture.Node {
	d := tensor.Of(tensor.Int64, Count)
	return []capture.Node{
		{
			Label: Label("double", Doubler), Kernel: Doubler, Inputs: 1,
			Operands: []device.Address{at(device.InputMemory, 0), at(device.OutputMemory, 0)},
			Problem:  &kernel.Problem{In: []tensor.Desc{d}, Out: []tensor.Desc{d}, Params: struct{}{}, Machine: Machine()},
		},
		Adding("first", Adder, 10, 1),
		{Label: &device.Label{Op: "graph", Node: "own"}, HostOnly: "it calls a user's own operation"},
		Adding("second", Adder, 21, 2),
	}
}

// Settings are those of a graph that is captured in a form, offline.
func Settings(f sink.Form) capture.Settings {
	return capture.Settings{
		Name: "graph", Form: f, Soc: sink.Profile{Name: "910B3", Sinks: true, Prefetch: 8}, Machine: Machine(), Streams: 1,
		Build: sink.Build{Option: sink.Choice{On: true, Level: "compile"}, Offline: true},
	}
}
