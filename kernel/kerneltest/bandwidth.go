package kerneltest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
)

// Sizes of working sets: one that a second-level cache holds, and one that no
// cache holds.
const (
	CacheBytes  = 512 << 10
	MemoryBytes = 256 << 20
)

// Launch prepares a launch of one block of the first kernel of the table that
// takes p, for one core, on memory of its own that holds bytes 0x3c where in
// does not give an input. The function that it returns runs the block.
func Launch(t testing.TB, table kernel.Table, p kernel.Problem, in map[int][]byte) func() {
	t.Helper()
	p.Machine.Cores = 1
	fillMachine(&p.Machine)
	k, _, err := table.Select(&p, kernel.Filter{})
	require.NoError(t, err)
	var a device.Args
	for i := range len(p.In) + len(p.Out) {
		b, ok := in[i]
		if !ok {
			b = filled(operandBytes(&p, i))
		}
		a.Buffers = append(a.Buffers, device.Wrap(b))
	}
	a.Scratch = device.Wrap(filled(k.Scratch(&p)))
	a.Tiling = filled(int64(k.TilingSize(&p)))
	g, err := k.Tile(&p, a.Tiling)
	require.NoError(t, err)
	a.Key, a.Blocks = g.Key, g.Blocks
	run := k.Program().Run
	return func() {
		for b := range a.Blocks {
			if err := run(&a, b); err != nil {
				t.Error(err)
			}
		}
	}
}

func operandBytes(p *kernel.Problem, i int) int64 {
	if i < len(p.In) {
		return p.In[i].Bytes()
	}
	return p.Out[i-len(p.In)].Bytes()
}

// filled returns n bytes, 64-byte aligned; nil for 0.
func filled(n int64) []byte {
	if n == 0 {
		return nil
	}
	b := device.BytesOf(make([]uint64, (n+64+7)/8))
	for !aligned(b) {
		b = b[8:]
	}
	for i := range b {
		b[i] = 0x3c
	}
	return b[:n]
}

// Bandwidth runs a launch that moves the given number of bytes, read and
// written, in turns with a copy that moves as many, and reports the launch's
// GB/s and its fraction of the copy's.
func Bandwidth(b *testing.B, bytes int64, launch func()) {
	b.Helper()
	src, dst := filled(bytes/2), filled(bytes/2)
	// Turns of about a millisecond hide the clock.
	turns := max(1, int(8e6/bytes))
	launch()
	var work, moved time.Duration
	for b.Loop() {
		start := time.Now()
		for range turns {
			launch()
		}
		middle := time.Now()
		for range turns {
			copy(dst, src)
		}
		work += middle.Sub(start)
		moved += time.Since(middle)
	}
	done := float64(bytes) * float64(turns) * float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(done/float64(work.Nanoseconds()), "GB/s")
	b.ReportMetric(done/float64(moved.Nanoseconds()), "memcpy-GB/s")
	b.ReportMetric(float64(moved)/float64(work), "of-memcpy")
}

// Bandwidths runs Bandwidth as sub-benchmarks for a working set in the cache and
// one in memory. make returns the problem for a number of elements, to which
// the size of its operands is about proportional; a launch reads or writes each
// operand once.
func Bandwidths(b *testing.B, name string, table kernel.Table, make func(n int64) kernel.Problem) {
	size := func(p *kernel.Problem) (bytes int64) {
		for i := range len(p.In) + len(p.Out) {
			bytes += operandBytes(p, i)
		}
		return bytes
	}
	for _, set := range []struct {
		name  string
		bytes int64
	}{{"cache", CacheBytes}, {"memory", MemoryBytes}} {
		b.Run(fmt.Sprintf("k=%s/in=%s", name, set.name), func(b *testing.B) {
			const sample = 1 << 16
			p := make(sample)
			p = make(set.bytes * sample / size(&p))
			Bandwidth(b, size(&p), Launch(b, table, p, nil))
		})
	}
}
