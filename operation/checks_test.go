package operation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/overflow"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/runner"
	"goatb/status"
	"goatb/tensor"
)

// The overflow check reports operation, node and kernel, by the rules of each
// type; what only moves bytes is not looked at.
func TestOverflowCheck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		dtype tensor.DType
		x     float32
		by    float32
		mode  overflow.Mode
		want  bool
	}{
		{"f32 small", tensor.Float32, 1e-30, 2, overflow.InfNaN, false},
		{"f32 max + max", tensor.Float32, math.MaxFloat32, 2, overflow.InfNaN, true},
		{"f32 max alone", tensor.Float32, math.MaxFloat32, 1, overflow.InfNaN, false},
		{"f32 max alone, saturation", tensor.Float32, math.MaxFloat32, 1, overflow.Saturation, true},
		{"f32 small, saturation", tensor.Float32, 1e-30, 2, overflow.Saturation, false},
		{"f16 max + max", tensor.Float16, 65504, 2, overflow.InfNaN, true},
		{"bf16 2^121", tensor.BFloat16, 0x1p121, 1, overflow.InfNaN, false},
		{"bf16 large * large", tensor.BFloat16, 0x1p127, 2, overflow.InfNaN, true},
	} {
		for _, stop := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				var hits []runner.OverflowHit
				b := newBed(t, atbctx.WithOverflowCheck(tt.mode, stop, func(h runner.OverflowHit) { hits = append(hits, h) }))
				g := b.graph(operation.GraphParam{Name: "G", Inputs: 1, Outputs: 1, Internals: 1, Nodes: []operation.Node{
					{Name: "first", Op: newOp(t, muls(1e-3)), In: []int{0}, Out: []int{2}},
					{Name: "second", Op: newOp(t, muls(tt.by)), In: []int{0}, Out: []int{1}},
				}})
				x, err := atbctx.FromFloats(b.c, tt.dtype, []float32{1, tt.x}, 2)
				require.NoError(t, err)
				p := b.pack(g, x)
				err = g.Execute(p, b.setup(g, p), b.c)
				if !tt.want {
					require.NoError(t, err)
					assert.Empty(t, hits)
					return
				}
				require.Len(t, hits, 1)
				assert.Equal(t, "G", hits[0].Op)
				assert.Equal(t, "second", hits[0].Node)
				assert.Contains(t, hits[0].String(), "G: second (")
				assert.Equal(t, int64(1), b.c.Stats().Overflows)
				if stop {
					require.ErrorIs(t, err, status.ErrRuntimeFail)
					assert.ErrorContains(t, err, "overflow in output 0")
				} else {
					require.NoError(t, err)
				}
				b.sync()
			})
		}
	}
	t.Run("copies", func(t *testing.T) {
		b := newBed(t, atbctx.WithOverflowCheck(overflow.InfNaN, true, nil))
		o := b.op(custom{lower: func(g *kernelgraph.Builder) error { return g.Copy(g.In(0), g.Out(0)) }})
		b.run(o, b.f32([]float32{float32(math.Inf(1))}))
	})
}

// A kernel that changes its tiling in device memory is found by name.
func TestCompareTiling(t *testing.T) {
	vandal := kernel.Table{kernel.Define(kernel.Def[struct{}, struct{ N int64 }]{
		Name: "test/vandal",
		Tile: func(*kernel.Problem, struct{}, *struct{ N int64 }, []int64) (kernel.Grid, error) {
			return kernel.Grid{Blocks: 1}, nil
		},
		Run: func(_ *kernel.Args, _ int, t *struct{ N int64 }, _ []int64) error { t.N++; return nil },
	})}
	for _, policy := range []string{"overall", "multi-stream"} {
		b := newBed(t, atbctx.WithPolicy(policy), atbctx.WithVariable("ATB_COMPARE_TILING_EVERY_KERNEL", "1"))
		o := b.op(custom{lower: func(g *kernelgraph.Builder) error {
			return g.Kernel(kernelgraph.Call{Name: "step", Table: vandal, Params: struct{}{}, Out: []kernelgraph.Ref{g.Out(0)}})
		}})
		p := b.pack(o, b.f32([]float32{1}))
		b.setup(o, p)
		err := o.Execute(p, device.Buffer{}, b.c)
		require.ErrorIs(t, err, status.ErrRuntimeFail, policy)
		assert.ErrorContains(t, err, "CustomOperation: execute: step (test/vandal): the tiling in device memory was changed after the kernel")
		b.sync()
		assert.Zero(t, b.c.Stats().DeviceRing.InUse)
	}
}
