package move

import (
	"testing"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// benchmark runs one block over the whole problem.
func benchmark(b *testing.B, k *kernel.Kernel, p kernel.Problem, in ...[]byte) {
	p.Machine = kernel.Machine{Cores: 1}
	if err := k.Supports(&p); err != nil {
		b.Fatal(err)
	}
	a := kernel.Args{Tiling: make([]byte, k.TilingSize(&p)), Blocks: 1}
	g, err := k.Tile(&p, a.Tiling)
	if err != nil {
		b.Fatal(err)
	}
	a.Key = g.Key
	for _, m := range in {
		a.Buffers = append(a.Buffers, device.Wrap(m))
	}
	bytes := int64(0)
	for i := range p.Out {
		bytes += p.Out[i].Bytes()
		a.Buffers = append(a.Buffers, device.Wrap(make([]byte, p.Out[i].Bytes())))
	}
	b.SetBytes(bytes)
	for b.Loop() {
		if err := k.Program().Run(&a, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTranspose(b *testing.B) {
	for _, dt := range []tensor.DType{tensor.Int8, tensor.Float16, tensor.Float32, tensor.Int64} {
		for _, n := range []int64{64, 1024, 4096} {
			d, o := tensor.Of(dt, 1024, n), tensor.Of(dt, n, 1024)
			b.Run(d.String(), func(b *testing.B) {
				benchmark(b, transposeTiles, problem(Perm{[8]int8{1, 0}}, []tensor.Desc{o}, d), make([]byte, d.Bytes()))
			})
		}
	}
}

func BenchmarkTransposeHeads(b *testing.B) {
	d, o := tensor.Of(tensor.Float16, 512, 32, 128), tensor.Of(tensor.Float16, 32, 512, 128)
	benchmark(b, transposeRows, problem(Perm{[8]int8{1, 0, 2}}, []tensor.Desc{o}, d), make([]byte, d.Bytes()))
}

func BenchmarkCopy(b *testing.B) {
	d := tensor.Of(tensor.Float16, 1024, 1024)
	benchmark(b, copyBytes, problem(struct{}{}, []tensor.Desc{d}, d), make([]byte, d.Bytes()))
}

func BenchmarkJoin(b *testing.B) {
	for _, n := range []int64{1, 64} {
		d, o := tensor.Of(tensor.Float16, 65536/n, n), tensor.Of(tensor.Float16, 65536/n, 2*n)
		b.Run(d.String(), func(b *testing.B) {
			benchmark(b, joinRows, problem(Axis{1}, []tensor.Desc{o}, d, d), make([]byte, d.Bytes()), make([]byte, d.Bytes()))
		})
	}
}

func BenchmarkGather(b *testing.B) {
	for _, n := range []int64{1, 64, 4096} {
		x, idx, o := tensor.Of(tensor.Float16, 1000, n), tensor.Of(tensor.Int32, 512), tensor.Of(tensor.Float16, 512, n)
		picks := make([]int32, 512)
		for i := range picks {
			picks[i] = int32(i * 7 % 1000)
		}
		b.Run(x.String(), func(b *testing.B) {
			benchmark(b, gatherRows, problem(Pick{}, []tensor.Desc{o}, x, idx), make([]byte, x.Bytes()), device.BytesOf(picks))
		})
	}
}
