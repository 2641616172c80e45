package image

import (
	"testing"

	"goatb/device"
)

// BenchmarkTiling compares a tiling from the bytes of its context with the same
// one on the host.
func BenchmarkTiling(b *testing.B) {
	bed := newBed(b, sums, problem(), false, nil)
	bed.setValues(values)
	f := functions(b)
	b.Run("from=bytes", func(b *testing.B) {
		run, args := f.Entry().Run, &device.CPUArgs{Inputs: bed.mem.In, Outputs: bed.mem.Out}
		b.ReportAllocs()
		for b.Loop() {
			if err := run(args); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(bed.layout.Size), "context-bytes")
	})
	b.Run("from=problem", func(b *testing.B) {
		p := *problem()
		p.Values = values
		dst := block(int64(sums.TilingSize(&p)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := sums.Tile(&p, dst); err != nil {
				b.Fatal(err)
			}
		}
	})
}
