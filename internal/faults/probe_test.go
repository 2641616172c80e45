package faults_test

import (
	"errors"

	"goatb/atb"
	"goatb/device"
	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/tensor"
)

// probe is an operation of one float32 input and output for what the built
// operations do not do: y = x + Add, then what Mode says.
type probe struct {
	Mode probeMode
	Add  int64
	// Words makes the tiling that many words longer.
	Words int64
	// Uncached keeps the tiling out of the caches.
	Uncached bool
}

type probeMode int64

const (
	probePlain probeMode = iota
	probeFails
	probePanics
)

type probeTiling struct{ Mode, Add, N int64 }

var errProbe = errors.New("no luck")

var probeKernel = kernel.Table{kernel.Define(kernel.Def[probe, probeTiling]{
	Name:    "probe/go",
	InPlace: true,
	Tail:    func(_ *kernel.Problem, p probe) int { return int(p.Words) },
	Tile: func(q *kernel.Problem, p probe, t *probeTiling, _ []int64) (kernel.Grid, error) {
		*t = probeTiling{int64(p.Mode), p.Add, q.In[0].Numel()}
		return kernel.Grid{Blocks: 1}, nil
	},
	Run: func(a *kernel.Args, _ int, t *probeTiling, _ []int64) error {
		switch probeMode(t.Mode) {
		case probeFails:
			return errProbe
		case probePanics:
			panic(errProbe)
		}
		x, y := device.View[float32](a.Mem(0)), device.View[float32](a.Mem(1))
		for i := range t.N {
			y[i] = x[i] + float32(t.Add)
		}
		return nil
	},
})}

func (probe) Signature() operation.Signature {
	return operation.Signature{Name: "ProbeOperation", In: operation.Ports("x"), Out: operation.Ports("y"), Variant: "Probe", Native: "f32->f32"}
}
func (probe) Validate() error                                 { return nil }
func (probe) Check(*operation.Query) error                    { return nil }
func (probe) Infer(q *operation.Query) ([]tensor.Desc, error) { return []tensor.Desc{q.In[0]}, nil }
func (p probe) Lower(b *kernelgraph.Builder, _ *operation.Query) error {
	return b.Kernel(kernelgraph.Call{Table: probeKernel, Params: p, In: []kernelgraph.Ref{b.In(0)}, Out: []kernelgraph.Ref{b.Out(0)}, NoCache: p.Uncached})
}

var _ atb.Spec = probe{}
