package cpu_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
)

func open(t testing.TB, opts ...cpu.Option) *cpu.Device {
	t.Helper()
	d, err := cpu.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func newStream(t testing.TB, d *cpu.Device) device.Stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	return s
}

var modes = []struct {
	name string
	opts []cpu.Option
}{
	{"async", nil},
	{"inline", []cpu.Option{cpu.WithInline()}},
}

func emptyLaunch() *device.Launch {
	return &device.Launch{
		Program: &device.Program{Name: "empty", Run: func(*device.Args, int) error { return nil }},
		Blocks:  1, Buffers: make([]device.Buffer, 4), Inputs: 3, Inline: make([]byte, 128),
	}
}

func TestLaunchAllocatesNothing(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			s := newStream(t, open(t, m.opts...))
			l := emptyLaunch()
			for range 5000 {
				require.NoError(t, s.Launch(l))
			}
			require.NoError(t, s.Synchronize(t.Context()))
			got := testing.AllocsPerRun(2000, func() { _ = s.Launch(l) })
			require.Zero(t, got)
			require.NoError(t, s.Synchronize(t.Context()))
		})
	}
}

func BenchmarkLaunchEmpty(b *testing.B) {
	for _, m := range modes {
		b.Run("mode="+m.name, func(b *testing.B) {
			s := newStream(b, open(b, m.opts...))
			l := emptyLaunch()
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Launch(l); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, s.Synchronize(b.Context()))
			b.ReportMetric(float64(s.Stats().QueueStalls)/float64(b.N), "stalls/op")
		})
	}
}

func ExampleNew() {
	d, err := cpu.New(cpu.WithInline())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	fmt.Println(d.Props().Name)
	// Output: cpu (inline)
}
