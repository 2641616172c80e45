package devicetest

import (
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/stretchr/testify/require"

	"goatb/device"
)

// bed is a device under test with short forms that fail the test on an error.
type bed struct {
	*testing.T
	open Open
	dev  device.Device
}

func newBed(t *testing.T, open Open) *bed {
	b := &bed{T: t, open: open, dev: open(t)}
	t.Cleanup(func() {
		if err := b.dev.Close(); err != nil {
			t.Errorf("close of the device: %v", err)
		}
	})
	return b
}

func (b *bed) alloc(size int64) device.Buffer {
	b.Helper()
	buf, err := b.dev.Alloc(size)
	require.NoError(b, err)
	return buf
}

func (b *bed) host(size int64) device.Buffer {
	b.Helper()
	buf, err := b.dev.AllocHost(size)
	require.NoError(b, err)
	return buf
}

func (b *bed) stream() stream {
	b.Helper()
	s, err := b.dev.NewStream()
	require.NoError(b, err)
	return stream{b: b, Stream: s}
}

func (b *bed) event() device.Event {
	b.Helper()
	e, err := b.dev.NewEvent()
	require.NoError(b, err)
	return e
}

// settle waits until the device does nothing more of its own accord.
func (b *bed) settle() { synctest.Wait() }

// stream is a stream whose calls fail the test on an error.
type stream struct {
	b *bed
	device.Stream
}

func (s stream) launch(l *device.Launch) {
	s.b.Helper()
	require.NoError(s.b, s.Launch(l))
}

// do enqueues a kernel of one block without operands.
func (s stream) do(f func()) {
	s.b.Helper()
	s.launch(call(f))
}

func (s stream) copy(dst, src device.Buffer) {
	s.b.Helper()
	require.NoError(s.b, s.Copy(dst, src))
}

func (s stream) record(e device.Event) {
	s.b.Helper()
	require.NoError(s.b, s.Record(e))
}

func (s stream) wait(e device.Event) {
	s.b.Helper()
	require.NoError(s.b, s.Wait(e))
}

func (s stream) sync() {
	s.b.Helper()
	require.NoError(s.b, s.Synchronize(s.b.Context()))
}

// stalled returns a stream that holds its tasks until release is called.
func (b *bed) stalled() (s stream, release func()) {
	b.Helper()
	s = b.stream()
	opener, gate := b.stream(), b.event()
	s.wait(gate)
	return s, func() {
		b.Helper()
		opener.record(gate)
		opener.sync()
	}
}

// call is a launch that calls f once.
func call(f func()) *device.Launch {
	return &device.Launch{Blocks: 1, Program: &device.Program{Name: "test/call", Run: func(*device.Args, int) error {
		f()
		return nil
	}}}
}

// fails is a launch that returns err.
func fails(err error) *device.Launch {
	return &device.Launch{Blocks: 1, Program: &device.Program{Name: "test/fails", Run: func(*device.Args, int) error { return err }}}
}

// fill is a launch that sets every byte of buf.
func fill(buf device.Buffer, v byte) *device.Launch {
	return &device.Launch{Blocks: 1, Buffers: []device.Buffer{buf}, Program: &device.Program{Name: "test/fill", Run: func(a *device.Args, _ int) error {
		for i := range a.Mem(0) {
			a.Mem(0)[i] = v
		}
		return nil
	}}}
}

// add is a launch that adds v to every byte of src into dst.
func add(dst, src device.Buffer, v byte) *device.Launch {
	return &device.Launch{Blocks: 1, Buffers: []device.Buffer{src, dst}, Inputs: 1, Program: &device.Program{Name: "test/add", Run: func(a *device.Args, _ int) error {
		src, dst := a.Mem(0), a.Mem(1)
		for i := range dst {
			dst[i] = src[i] + v
		}
		return nil
	}}}
}

// pattern returns n bytes that differ from their neighbours and from those of
// another seed.
func pattern(n, seed int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + seed*31 + i/251)
	}
	return p
}

func repeat(v byte, n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = v
	}
	return p
}

func address(mem []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(mem))) }
