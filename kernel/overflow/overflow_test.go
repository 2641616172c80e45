package overflow_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/kernel/overflow"
	"goatb/status"
	"goatb/tensor"
)

func halves(bits ...uint16) []byte { return device.BytesOf(bits) }

func singles(v ...float32) []byte { return device.BytesOf(v) }

func TestScan(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		name            string
		dtype           tensor.DType
		x               []byte
		infNaN, reached bool
	}{
		{"f32 small", tensor.Float32, singles(0, -1, 1e-45, 3e38), false, false},
		{"f32 infinity", tensor.Float32, singles(0, inf), true, true},
		{"f32 negative infinity", tensor.Float32, singles(-inf, 0), true, true},
		{"f32 NaN", tensor.Float32, singles(0, float32(math.NaN())), true, true},
		{"f32 largest", tensor.Float32, singles(0, -math.MaxFloat32), false, true},
		{"f16 small", tensor.Float16, halves(0x0000, 0x8001, 0x7bfe), false, false},
		{"f16 infinity", tensor.Float16, halves(0x7c00), true, true},
		{"f16 negative infinity", tensor.Float16, halves(0xfc00), true, true},
		{"f16 NaN that would be infinite as bf16", tensor.Float16, halves(0x7f80), true, true},
		{"f16 largest", tensor.Float16, halves(0x7bff), false, true},
		{"bf16 infinity that would be NaN as f16", tensor.BFloat16, halves(0x7f80), true, true},
		{"bf16 2^121 that would be infinite as f16", tensor.BFloat16, halves(0x7c00), false, false},
		{"bf16 NaN", tensor.BFloat16, halves(0xffc0), true, true},
		{"bf16 largest", tensor.BFloat16, halves(0x7f7f), false, true},
	} {
		for mode, want := range map[overflow.Mode]bool{overflow.InfNaN: tt.infNaN, overflow.Saturation: tt.reached} {
			t.Run(fmt.Sprintf("%s/%s", tt.name, mode), func(t *testing.T) {
				assert.Equal(t, want, scan(t, tt.dtype, tt.x, mode))
			})
		}
	}
}

// scan runs the kernel with several worker counts.
func scan(t *testing.T, d tensor.DType, x []byte, mode overflow.Mode) bool {
	t.Helper()
	out := kerneltest.Run(t, kerneltest.Case{
		Kernel: overflow.Scan[0], Keep: true, In: [][]byte{x},
		Problem: kernel.Problem{
			In:     []tensor.Desc{tensor.Of(d, int64(len(x))/d.Size())},
			Out:    []tensor.Desc{tensor.Of(tensor.Int32, 1)},
			Params: overflow.Params{Mode: mode},
		},
	})
	return device.View[int32](out[0])[0] == 1
}

// In a tensor that is cut into blocks one element is enough, wherever it lies.
func TestScanOfManyBlocks(t *testing.T) {
	const n = 100_003
	x := make([]float32, n)
	assert.False(t, scan(t, tensor.Float32, singles(x...), overflow.InfNaN))
	for _, at := range []int{0, 1, n / 2, n - 1} {
		x[at] = float32(math.Inf(-1))
		assert.True(t, scan(t, tensor.Float32, singles(x...), overflow.InfNaN), "%d", at)
		x[at] = 0
	}
}

func TestScanTakesFloatsOnly(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Int32, tensor.Int8, tensor.Float64} {
		p := kernel.Problem{In: []tensor.Desc{tensor.Of(d, 2)}, Out: []tensor.Desc{tensor.Of(tensor.Int32, 1)}, Params: overflow.Params{}}
		_, _, err := overflow.Scan.Select(&p, kernel.Filter{})
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, d.String())
	}
}
