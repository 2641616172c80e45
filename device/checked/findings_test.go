package checked_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/status"
)

func TestUseAfterFree(t *testing.T) {
	inModes(t, func(b *bed) {
		s, x, y := b.stream(), b.alloc(64), b.alloc(64)
		b.ok(s.Launch(kernel("k", 0, x)))
		b.ok(b.Free(x))
		err := s.Launch(kernel("k", 1, y, x))
		require.ErrorIs(b, err, status.ErrInvalidTensorAddr)
		require.ErrorContains(b, err, "operand 1")
		require.Equal(b, "launch of k (op: k) on stream 0 at findings_test.go uses memory of 64 bytes that was freed at findings_test.go", text(b.T, err, checked.UseAfterFree))
		err = s.Copy(x, y)
		require.ErrorIs(b, err, status.ErrInvalidTensorAddr)
		require.Equal(b, "copy on stream 0 at findings_test.go uses memory of 64 bytes that was freed at findings_test.go", text(b.T, err, checked.UseAfterFree))
		err = b.Free(x)
		require.ErrorIs(b, err, status.ErrInvalidParam)
		require.Regexp(b, `freed before at findings_test\.go:\d+`, err.Error())
		b.sync(s, "")
	})
}

func TestNobodyRecords(t *testing.T) {
	inModes(t, func(b *bed) {
		s, o, e, f := b.stream(), b.stream(), b.event(), b.event()
		b.ok(s.Wait(e))
		b.ok(s.Record(f))
		b.ok(o.Wait(f))
		start := time.Now()
		require.Equal(b, "wait on stream 1 at findings_test.go waits for the event made at checked_test.go, whose record on stream 0 at findings_test.go comes behind; "+
			"wait on stream 0 at findings_test.go waits for the event made at checked_test.go, which nobody records after that", b.sync(o, checked.Deadlock))
		require.Equal(b, 3*time.Second, time.Since(start), "after the grace time")

		require.Contains(b, text(b.T, f.Synchronize(b.Context()), checked.Deadlock), "which nobody records")
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		for _, err := range []error{s.Synchronize(ctx), f.Synchronize(ctx)} {
			require.ErrorIs(b, err, context.DeadlineExceeded)
			require.Contains(b, text(b.T, err, checked.Deadlock), "which nobody records")
		}
		b.ok(b.stream().Record(e))
		b.sync(o, "")
		b.ok(f.Synchronize(b.Context()))
	}, checked.WithGrace(3*time.Second))
}

func TestCircle(t *testing.T) {
	for _, m := range modes {
		synctest.Test(t, func(t *testing.T) {
			inner, err := cpu.New(m.opts...)
			require.NoError(t, err)
			b := &bed{T: t, Device: checked.New(inner)}
			s, o, e, f := b.stream(), b.stream(), b.event(), b.event()
			b.ok(s.Wait(e))
			b.ok(o.Wait(f))
			b.ok(s.Record(f))
			b.ok(o.Record(e))
			start := time.Now()
			require.Equal(t, "wait on stream 0 at findings_test.go waits for the event made at checked_test.go, whose record on stream 1 at findings_test.go comes behind; "+
				"wait on stream 1 at findings_test.go waits for the event made at checked_test.go, whose record on stream 0 at findings_test.go comes behind; "+
				"so they wait for each other", b.sync(s, checked.Deadlock))
			require.Zero(t, time.Since(start), "at once")
			self, g := b.stream(), b.event()
			b.ok(self.Wait(g))
			b.ok(self.Record(g))
			require.Contains(t, b.sync(self, checked.Deadlock), "so they wait for each other")
			require.Contains(t, text(t, g.Synchronize(t.Context()), checked.Deadlock), "so they wait for each other")
			require.ErrorIs(t, b.Close(), status.ErrDeviceFail, "the circles are cut")
		})
	}
}

// TestLateRecord lets another goroutine record within the grace time.
func TestLateRecord(t *testing.T) {
	inModes(t, func(b *bed) {
		s, e := b.stream(), b.event()
		b.ok(s.Wait(e))
		go func() {
			<-time.After(50 * time.Second)
			assert.NoError(b, b.stream().Record(e))
		}()
		b.sync(s, "")
	}, checked.WithGrace(time.Minute))
}

// TestSlowKernel lets a kernel run longer than the grace time.
func TestSlowKernel(t *testing.T) {
	inModes(t, func(b *bed) {
		s := b.stream()
		l := kernel("slow", 0)
		l.Program.Run = func(*device.Args, int) error {
			<-time.After(time.Hour)
			return nil
		}
		b.ok(s.Launch(l))
		b.sync(s, "")
	}, checked.WithGrace(time.Second))
}

// TestStreamErrorsPass checks that errors of kernels are not lost among
// findings.
func TestStreamErrorsPass(t *testing.T) {
	inModes(t, func(b *bed) {
		s, x := b.stream(), b.alloc(8)
		bad := errors.New("bad kernel")
		l := kernel("bad", 0, x, x)
		l.Program.Run = func(*device.Args, int) error { return bad }
		b.ok(s.Launch(l))
		err := s.Synchronize(b.Context())
		require.ErrorIs(b, err, bad)
		text(b.T, err, checked.Overlap)
		b.sync(s, "")
	})
}

// poke writes a byte at a distance from the start of mem, outside of it too.
func poke(mem []byte, at int) {
	*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(mem)), at)) = 1
}

func TestOutOfBounds(t *testing.T) {
	for _, c := range []struct {
		name string
		at   int
		want string
	}{
		{"behind", 100, "byte 0 behind"},
		{"further behind", 100 + 700, "byte 700 behind"},
		{"before", -3, "byte 3 before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inModes(t, func(b *bed) {
				s, x := b.stream(), b.alloc(100)
				b.ok(s.Launch(kernel("good", 0, x)))
				l := kernel("bad", 0, x)
				l.Program.Run = func(a *device.Args, block int) error {
					if block == 1 {
						poke(a.Mem(0), c.at)
					}
					return nil
				}
				b.ok(s.Launch(l))
				b.ok(s.Launch(kernel("good", 0, x)))
				require.Equal(b, c.want+" an allocation of 100 bytes made at checked_test.go was written; found after the launch of bad (op: bad) on stream 0 at findings_test.go",
					b.sync(s, checked.OutOfBounds))
				b.sync(s, "")
				b.ok(b.Free(x))
			})
		})
	}
}

func TestOutOfBoundsByTheHost(t *testing.T) {
	inModes(t, func(b *bed) {
		s, x, y := b.stream(), b.host(5000), b.alloc(3)
		poke(x.Bytes(), 5000)
		poke(x.Bytes(), -1)
		require.Equal(b, "byte 1 before and byte 0 behind an allocation of 5000 bytes made at checked_test.go was written", b.sync(s, checked.OutOfBounds))
		poke(y.Bytes(), 4)
		err := b.Free(y)
		require.Equal(b, "byte 1 behind an allocation of 3 bytes made at checked_test.go was written before its free at findings_test.go", text(b.T, err, checked.OutOfBounds))
		require.False(b, y.Live())
		poke(x.Bytes(), 5000)
		require.Contains(b, text(b.T, b.Close(), checked.OutOfBounds), "byte 0 behind")
	})
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		name   string
		launch func(x device.Buffer) *device.Launch
		want   string
	}{
		{"in place", func(x device.Buffer) *device.Launch { return kernel("k", 1, x, x) }, ""},
		{"two inputs", func(x device.Buffer) *device.Launch { return kernel("k", 2, x, x.At(8, 8)) }, ""},
		{"neighbours", func(x device.Buffer) *device.Launch { return kernel("k", 1, x.At(0, 8), x.At(8, 8)) }, ""},
		{"empty output", func(x device.Buffer) *device.Launch { return kernel("k", 1, x, x.At(8, 0)) }, ""},
		{"absent", func(x device.Buffer) *device.Launch { return kernel("k", 1, device.Buffer{}, device.Buffer{}) }, ""},
		{"part of an input", func(x device.Buffer) *device.Launch { return kernel("k", 1, x.At(0, 16), x.At(12, 16)) }, "operand 0 (input) and operand 1 (output) share 4 bytes"},
		{"inside an input", func(x device.Buffer) *device.Launch { return kernel("k", 1, x, x.At(0, 8)) }, "operand 0 (input) and operand 1 (output) share 8 bytes"},
		{"two outputs", func(x device.Buffer) *device.Launch { return kernel("k", 0, x, x) }, "operand 0 (output) and operand 1 (output) share 64 bytes"},
		{"scratch", func(x device.Buffer) *device.Launch {
			l := kernel("k", 1, x)
			l.Scratch = x
			return l
		}, "operand 0 (input) and scratch (output) share 64 bytes"},
		{"tiling", func(x device.Buffer) *device.Launch {
			l := kernel("k", 0, x)
			l.Tiling = x.At(60, 4)
			return l
		}, "operand 0 (output) and tiling (input) share 4 bytes"},
		{"unused tiling", func(x device.Buffer) *device.Launch {
			l := kernel("k", 0, x)
			l.Tiling, l.Inline = x, []byte{1}
			return l
		}, ""},
		{"overlay", func(x device.Buffer) *device.Launch { return overlay(kernel("k", 1, x, x.At(0, 8), x.At(8, 56))) }, ""},
		{"overlay of a part", func(x device.Buffer) *device.Launch { return overlay(kernel("k", 1, x.At(0, 16), x.At(12, 16))) }, "operand 0 (input) and operand 1 (output) share 4 bytes"},
		{"overlay of outputs", func(x device.Buffer) *device.Launch { return overlay(kernel("k", 1, device.Buffer{}, x, x.At(8, 8))) }, "operand 1 (output) and operand 2 (output) share 8 bytes"},
		{"two names of the same bytes", func(x device.Buffer) *device.Launch {
			return kernel("k", 1, x.At(0, 8), device.Wrap(x.Bytes()[4:12]))
		}, "operand 0 (input) and operand 1 (output) share 4 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inModes(t, func(b *bed) {
				s := b.stream()
				b.ok(s.Launch(c.launch(b.alloc(64))))
				if c.want == "" {
					b.sync(s, "")
					return
				}
				require.Equal(b, "launch of k (op: k) on stream 0 at findings_test.go: "+c.want, b.sync(s, checked.Overlap))
				b.sync(s, "")
			})
		})
	}
}

func TestReuse(t *testing.T) {
	inModes(t, func(b *bed) {
		s, opener, gate := b.stream(), b.stream(), b.event()
		ring, dev := b.host(256), b.alloc(256)
		b.ok(s.Wait(gate))
		ring.Bytes()[3] = 1
		b.ok(s.Copy(dev, ring))
		ring.Bytes()[3] = 2
		b.ok(s.Copy(dev, ring))
		b.ok(opener.Record(gate))
		require.Equal(b, "copy on stream 0 at findings_test.go read host memory that was rewritten after the copy was enqueued; "+
			"the same memory was used again by the copy on stream 0 at findings_test.go", b.sync(s, checked.Reuse))
		require.EqualValues(b, 2, dev.Bytes()[3], "the copies ran all the same")
		require.EqualValues(b, 2, s.Stats().Copies)
		require.Zero(b, s.Stats().Launches)

		b.ok(s.Copy(dev, ring))
		b.sync(s, "")
		ring.Bytes()[3] = 3
		b.sync(s, "")
	})
}

// TestReuseByTheDevice lets an enqueued copy write the host memory that the next
// one reads.
func TestReuseByTheDevice(t *testing.T) {
	inModes(t, func(b *bed) {
		s, gate := b.stream(), b.event()
		host, x, y := b.host(64), b.alloc(64), b.alloc(64)
		x.Bytes()[0] = 9
		b.ok(s.Wait(gate))
		b.ok(s.Copy(host, x))
		b.ok(s.Copy(y, host))
		b.ok(b.stream().Record(gate))
		b.sync(s, "")
		require.EqualValues(b, 9, y.Bytes()[0])

		b.ok(s.Copy(host, x))
		b.ok(s.Copy(y, host))
		b.sync(s, "")
	})
}

func TestLeaks(t *testing.T) {
	for _, m := range modes {
		synctest.Test(t, func(t *testing.T) {
			inner, err := cpu.New(m.opts...)
			require.NoError(t, err)
			b := &bed{T: t, Device: checked.New(inner, checked.WithLeaks())}
			freed := b.alloc(10)
			b.ok(b.Free(freed))
			b.ok(b.stream().Close())
			b.ok(b.event().Close())
			leaky(b)
			err = b.Close()
			require.ErrorIs(t, err, status.ErrDeviceFail)
			text(t, err, checked.Leak)
			for _, want := range []string{"allocation of 77 bytes was not freed", "stream was not closed", "event was not closed", "checked_test.leaky at findings_test.go:"} {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "10 bytes")
			require.NoError(t, b.Close())
		})
	}
}

func leaky(b *bed) {
	b.alloc(77)
	b.stream()
	b.event()
}

func TestNoLeaks(t *testing.T) {
	inModes(t, func(b *bed) {
		x, s, e := b.alloc(10), b.stream(), b.event()
		b.ok(s.Launch(kernel("k", 0, x)))
		b.ok(s.Record(e))
		b.ok(b.Free(x))
		b.ok(s.Close())
		b.ok(e.Close())
	}, checked.WithLeaks())
}

// overlay lets the kernel's operands lie in each other.
func overlay(l *device.Launch) *device.Launch {
	p := *l.Program
	p.Overlay = true
	l.Program = &p
	return l
}
