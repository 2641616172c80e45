package move

import (
	"testing"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// BenchmarkBandwidth reports bytes moved by one core beside a copy.
func BenchmarkBandwidth(b *testing.B) {
	for _, t := range []tensor.DType{tensor.Int8, tensor.Float16, tensor.Float32, tensor.Int64} {
		kerneltest.Bandwidths(b, "transpose/"+t.String(), Transpose, func(n int64) kernel.Problem {
			rows := max(n/1024/64*64, 64)
			return problem(Perm{[8]int8{1, 0}}, []tensor.Desc{tensor.Of(t, 1024, rows)}, tensor.Of(t, rows, 1024))
		})
	}
	kerneltest.Bandwidths(b, "transpose-heads/f16", Transpose, func(n int64) kernel.Problem {
		tokens := max(n/4096, 1)
		return problem(Perm{[8]int8{1, 0, 2}}, []tensor.Desc{tensor.Of(tensor.Float16, 32, tokens, 128)}, tensor.Of(tensor.Float16, tokens, 32, 128))
	})
	kerneltest.Bandwidths(b, "copy", Copy, func(n int64) kernel.Problem {
		return problem(struct{}{}, []tensor.Desc{tensor.Of(tensor.Float16, n)}, tensor.Of(tensor.Float16, n))
	})
	kerneltest.Bandwidths(b, "join/f16", Join, func(n int64) kernel.Problem {
		half := tensor.Of(tensor.Float16, max(n/256, 1), 128)
		return problem(Axis{1}, []tensor.Desc{tensor.Of(tensor.Float16, half.Dim(0), 256)}, half, half)
	})
	kerneltest.Bandwidths(b, "split/f16", Split, func(n int64) kernel.Problem {
		half := tensor.Of(tensor.Float16, max(n/256, 1), 128)
		return problem(Axis{1}, []tensor.Desc{half, half}, tensor.Of(tensor.Float16, half.Dim(0), 256))
	})
}

// BenchmarkGather reports rows that are chosen in no order.
func BenchmarkGather(b *testing.B) {
	for _, width := range []int64{1, 64, 4096} {
		const bytes = kerneltest.CacheBytes
		rows := bytes / 4 / width
		x, idx := tensor.Of(tensor.Float16, rows, width), tensor.Of(tensor.Int32, rows)
		picks := make([]int32, rows)
		for i := range picks {
			picks[i] = int32(int64(i) * 7919 % rows)
		}
		b.Run("k=gather/"+x.String(), func(b *testing.B) {
			run := kerneltest.Launch(b, Gather, problem(Pick{}, []tensor.Desc{x}, x, idx), map[int][]byte{1: device.BytesOf(picks)})
			kerneltest.Bandwidth(b, 2*x.Bytes()+idx.Bytes(), run)
		})
	}
}
