package devicetest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

var copyChecks = []check{
	{"host to device to device to host", checkCopyChain},
	{"windows", checkCopyWindows},
	{"in order with kernels", checkCopyOrder},
	{"wrapped memory", checkCopyWrapped},
	{"zero bytes", checkCopyZero},
	{"refused", checkCopyRefused},
}

func checkCopyChain(b *bed) {
	for _, n := range []int{1, 100, 4096, 1<<20 + 17} {
		s := b.stream()
		in, out := b.host(int64(n)), b.host(int64(n))
		x, y := b.alloc(int64(n)), b.alloc(int64(n))
		copy(in.Bytes(), pattern(n, n))
		s.copy(x, in)
		s.copy(y, x)
		s.copy(out, y)
		s.sync()
		require.Equal(b, pattern(n, n), out.Bytes())
		stats := s.Stats()
		require.EqualValues(b, 3, stats.Copies)
		require.EqualValues(b, 3*n, stats.CopiedBytes)
	}
}

func checkCopyWindows(b *bed) {
	s := b.stream()
	x := b.alloc(64)
	s.copy(x.At(8, 16), device.WrapHost(repeat(1, 16)))
	s.copy(x.At(40, 8), x.At(8, 8))
	s.sync()
	want := make([]byte, 64)
	copy(want[8:], repeat(1, 16))
	copy(want[40:], repeat(1, 8))
	require.Equal(b, want, x.Bytes())
}

func checkCopyOrder(b *bed) {
	s := b.stream()
	const n = 512
	x, y := b.alloc(n), b.alloc(n)
	s.launch(fill(x, 1))
	for range 40 {
		s.copy(y, x)
		s.launch(add(x, y, 3))
	}
	s.sync()
	require.Equal(b, repeat(121, n), x.Bytes())
	require.Equal(b, repeat(118, n), y.Bytes())
}

func checkCopyWrapped(b *bed) {
	s := b.stream()
	src, dst := pattern(1000, 5), make([]byte, 1000)
	x := b.alloc(1000)
	s.copy(x, device.Wrap(src))
	s.copy(device.Wrap(dst), x)
	s.sync()
	require.Equal(b, src, dst)
}

func checkCopyZero(b *bed) {
	s := b.stream()
	x, empty := b.alloc(16), b.alloc(0)
	s.copy(x.At(16, 0), empty)
	s.copy(empty, x.At(3, 0))
	s.copy(empty, device.Wrap(nil))
	s.sync()
	require.Equal(b, make([]byte, 16), x.Bytes())
	require.EqualValues(b, 3, s.Stats().Copies)
}

func checkCopyRefused(b *bed) {
	s := b.stream()
	x, y, gone := b.alloc(16), b.alloc(32), b.alloc(16)
	require.NoError(b, b.dev.Free(gone))
	for _, c := range []struct {
		name     string
		dst, src device.Buffer
		want     status.Code
		text     string
	}{
		{"sizes", x, y, status.ErrInvalidParam, "16"},
		{"freed source", x, gone, status.ErrInvalidTensorAddr, "source"},
		{"freed destination", gone, x, status.ErrInvalidTensorAddr, "destination"},
		{"no memory", device.Buffer{}, device.Buffer{}, status.ErrInvalidTensorAddr, "no memory"},
		{"window outside", y.At(20, 16), x, status.ErrInvalidTensorAddr, "outside"},
	} {
		err := s.Copy(c.dst, c.src)
		assert.ErrorIs(b, err, c.want, c.name)
		assert.ErrorContains(b, err, c.text, c.name)
	}
	s.sync()
	require.Zero(b, s.Stats().Copies)
}
