package kerneltest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// recorder is a test that keeps its failure instead of failing.
type recorder struct {
	testing.TB
	text strings.Builder
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(&r.text, format, args...) }

func (r *recorder) FailNow() { runtime.Goexit() }

// failure runs f and returns what it failed with.
func failure(t *testing.T, f func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.text.String()
}

type doubling struct{ N int64 }

// run computes the elements of a block of y = 2x.
type run = func(a *kernel.Args, block int, t *doubling, tail []int64) error

func double(a *kernel.Args, block int, t *doubling, _ []int64) error {
	x, y := device.View[int32](a.Mem(0)), device.View[int32](a.Mem(1))
	lo, hi := kernel.Share(t.N, block, a.Blocks)
	for i := lo; i < hi; i++ {
		y[i] = 2 * x[i]
	}
	return nil
}

func defined(change func(*kernel.Def[struct{}, doubling])) kerneltest.Case {
	d := kernel.Def[struct{}, doubling]{
		Name: "test/double",
		Tile: func(p *kernel.Problem, _ struct{}, t *doubling, _ []int64) (kernel.Grid, error) {
			t.N = p.In[0].Numel()
			return kernel.Grid{Blocks: int(min(int64(p.Machine.Cores), t.N))}, nil
		},
		Run:  double,
		Cost: func(t *doubling, _ []int64) (int64, int64) { return t.N, 8 * t.N },
	}
	change(&d)
	x := tensor.Of(tensor.Int32, 5)
	return kerneltest.Case{
		Kernel:  kernel.Define(d),
		Problem: kernel.Problem{In: []tensor.Desc{x}, Out: []tensor.Desc{x}, Params: struct{}{}},
		In:      [][]byte{device.BytesOf([]int32{1, 2, 3, 4, 5})},
	}
}

func TestGoodKernel(t *testing.T) {
	c := defined(func(*kernel.Def[struct{}, doubling]) {})
	out := kerneltest.Run(t, c)
	assert.Equal(t, []int32{2, 4, 6, 8, 10}, device.View[int32](out[0]))
	c.InPlace = map[int]int{0: 0}
	assert.Equal(t, []int32{2, 4, 6, 8, 10}, device.View[int32](kerneltest.Run(t, c)[0]))
	assert.Equal(t, []int32{1, 2, 3, 4, 5}, device.View[int32](c.In[0]), "the case's own data")
}

// outside returns the int32 right before or behind the memory b, as a kernel in
// assembly could reach it.
func outside(b []byte, behind bool) *int32 {
	p := unsafe.Pointer(unsafe.SliceData(b))
	if behind {
		return (*int32)(unsafe.Add(p, len(b)))
	}
	return (*int32)(unsafe.Add(p, -4))
}

func TestBadKernels(t *testing.T) {
	first := func(f func(a *kernel.Args, y []int32)) run {
		return func(a *kernel.Args, block int, t *doubling, tail []int64) error {
			err := double(a, block, t, tail)
			if block == 0 {
				f(a, device.View[int32](a.Mem(1)))
			}
			return err
		}
	}
	calls := int64(0)
	for _, tt := range []struct {
		name, want string
		change     func(*kernel.Def[struct{}, doubling])
	}{
		{"changes an input", "changed input 0", func(d *kernel.Def[struct{}, doubling]) {
			d.Run = first(func(a *kernel.Args, _ []int32) { a.Mem(0)[0]++ })
		}},
		{"writes behind an output", "memory around an operand was written", func(d *kernel.Def[struct{}, doubling]) {
			d.Run = first(func(a *kernel.Args, _ []int32) { *outside(a.Mem(1), true) = 0 })
		}},
		{"writes before an input", "memory around an operand was written", func(d *kernel.Def[struct{}, doubling]) {
			d.Run = first(func(a *kernel.Args, _ []int32) { *outside(a.Mem(0), false) = 0 })
		}},
		{"reads behind an input", "output 0 differs", func(d *kernel.Def[struct{}, doubling]) {
			d.Run = first(func(a *kernel.Args, y []int32) { y[0] += *outside(a.Mem(0), true) })
		}},
		{"leaves an output byte alone", "output 0 differs", func(d *kernel.Def[struct{}, doubling]) {
			d.Tile = func(p *kernel.Problem, _ struct{}, t *doubling, _ []int64) (kernel.Grid, error) {
				t.N = p.In[0].Numel() - 1
				return kernel.Grid{Blocks: 1}, nil
			}
		}},
		{"depends on the number of workers", "with 2 workers", func(d *kernel.Def[struct{}, doubling]) {
			d.Run = first(func(a *kernel.Args, y []int32) { y[0] += int32(a.Blocks) })
		}},
		{"uses scratch that it did not write", "output 0 differs", func(d *kernel.Def[struct{}, doubling]) {
			d.Scratch = func(*kernel.Problem, struct{}) int64 { return 4 }
			d.Run = first(func(a *kernel.Args, y []int32) { y[0] += device.View[int32](a.Scratch.Bytes())[0] })
		}},
		{"changes its tiling", "changed its tiling", func(d *kernel.Def[struct{}, doubling]) {
			d.Run = first(func(a *kernel.Args, _ []int32) { a.Tiling[0]++ })
		}},
		{"tiles at random", "not a function of its problem", func(d *kernel.Def[struct{}, doubling]) {
			d.Tile = func(p *kernel.Problem, _ struct{}, t *doubling, _ []int64) (kernel.Grid, error) {
				calls++
				t.N = p.In[0].Numel() - calls%2
				return kernel.Grid{Blocks: 1}, nil
			}
		}},
		{"fails", "some reason", func(d *kernel.Def[struct{}, doubling]) {
			d.Run = func(*kernel.Args, int, *doubling, []int64) error { return fmt.Errorf("some reason") }
		}},
		{"has no cost", "want a cost", func(d *kernel.Def[struct{}, doubling]) { d.Cost = nil }},
		{"refuses", "not today", func(d *kernel.Def[struct{}, doubling]) {
			d.Supports = func(*kernel.Problem, struct{}) error { return fmt.Errorf("not today") }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := defined(tt.change)
			assert.Contains(t, failure(t, func(tb testing.TB) { kerneltest.Run(tb, c) }), tt.want)
		})
	}
}

func TestVaryingKernels(t *testing.T) {
	c := defined(func(d *kernel.Def[struct{}, doubling]) {
		d.Run = func(a *kernel.Args, block int, t *doubling, tail []int64) error {
			err := double(a, block, t, tail)
			if block == 0 {
				device.View[int32](a.Mem(1))[0] += int32(a.Blocks)
			}
			return err
		}
	})
	c.Varies = true
	require.Equal(t, int32(3), device.View[int32](kerneltest.Run(t, c)[0])[0], "that of one worker")
}
