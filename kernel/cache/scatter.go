package cache

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Positions of the inputs of Scatter. The caches are its outputs 0 and 1 too,
// in the same memory.
const (
	ScatterKey        = iota // [rows, ...]
	ScatterValue             // [rows, ...], or absent
	ScatterSlots             // int32 [rows]
	ScatterKeyCache          // see Layout
	ScatterValueCache        // as the key cache, absent with the values
	scatterInputs
)

// ScatterParams are the parameters of Scatter.
type ScatterParams struct{ Layout Layout }

// Scatter holds the kernels that write row i of key and value to slot i of
// their caches. A negative slot is passed over; a slot behind the cache is an
// error that names it.
var Scatter = kernel.Table{scatterGo}

type scatterTiling struct {
	Rows       int64
	Key, Value side
}

var scatterGo = kernel.Define(kernel.Def[ScatterParams, scatterTiling]{
	Name:    "cachescatter/go",
	Class:   device.Move,
	InPlace: true,
	Pairs:   [][2]int{{0, ScatterKeyCache}, {1, ScatterValueCache}},
	Supports: func(p *kernel.Problem, a ScatterParams) error {
		var t scatterTiling
		return t.measure(p, a)
	},
	Tile: func(p *kernel.Problem, a ScatterParams, t *scatterTiling, _ []int64) (kernel.Grid, error) {
		if err := t.measure(p, a); err != nil {
			return kernel.Grid{}, err
		}
		nanos := t.Key.nanos(t.Rows) + t.Value.nanos(t.Rows)
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Rows, nanos)}, nil
	},
	Run: runScatter,
	Cost: func(t *scatterTiling, _ []int64) (flops, bytes int64) {
		return 0, t.Rows * (2*(t.Key.Row+t.Value.Row) + 4)
	},
})

func (t *scatterTiling) measure(p *kernel.Problem, a ScatterParams) error {
	if len(p.In) != scatterInputs || len(p.Out) != 2 {
		return status.Errorf(status.ErrInvalidParam, "want %d inputs and 2 outputs, got %d and %d", scatterInputs, len(p.In), len(p.Out))
	}
	if err := sameCaches(p, ScatterKeyCache); err != nil {
		return err
	}
	slots := &p.In[ScatterSlots]
	if slots.DType != tensor.Int32 || slots.Rank() != 1 {
		return status.Errorf(status.ErrInvalidParam, "want int32 slots of rank 1, got %s", slots)
	}
	t.Rows = slots.Dim(0)
	for i, s := range [...]*side{&t.Key, &t.Value} {
		x := &p.In[ScatterKey+i]
		if err := s.fillSide(x, &p.In[ScatterKeyCache+i], a.Layout, t.Rows, rowOf(x)); err != nil {
			return err
		}
	}
	if !t.Key.Present || t.Value.Present && t.Value.Slots != t.Key.Slots {
		return status.Errorf(status.ErrInvalidParam, "want caches of as many slots, got %s and %s", p.In[ScatterKeyCache], p.In[ScatterValueCache])
	}
	return nil
}

// rowOf returns the elements of a row of x along its first axis.
func rowOf(x *tensor.Desc) int64 {
	if x.Empty() {
		return 0
	}
	return x.Shape.Product(1, x.Rank())
}

// sameCaches checks that the outputs are the caches, inputs first and first+1.
func sameCaches(p *kernel.Problem, first int) error {
	for i := range 2 {
		if p.Out[i] != p.In[first+i] {
			return status.Errorf(status.ErrInvalidParam, "output %d %s is not the cache %s", i, p.Out[i], p.In[first+i])
		}
	}
	return nil
}

func runScatter(a *kernel.Args, block int, t *scatterTiling, _ []int64) error {
	slots := ids(a, ScatterSlots)[:t.Rows]
	for i, s := range slots {
		if int64(s) >= t.Key.Slots {
			return status.Errorf(status.ErrRuntimeFail, "position %d: want a slot below %d, got %d", i, t.Key.Slots, s).On("slots")
		}
	}
	key, value := a.Mem(ScatterKey), a.Mem(ScatterValue)
	keyCache, valueCache := a.Mem(scatterInputs), a.Mem(scatterInputs+1)
	for i, s := range slots {
		slot, row := int64(s), int64(i)
		if slot < 0 || !owns(slot, block, a.Blocks) {
			continue
		}
		t.Key.write(keyCache, key, slot, row)
		t.Value.write(valueCache, value, slot, row)
	}
	return nil
}
