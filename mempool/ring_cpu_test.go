package mempool_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
	"goatb/mempool"
)

// On a real stream: each copy must read what its own launch wrote, though the
// host goes round the ring many times while copies are in flight.
func TestRingOnCPU(t *testing.T) {
	const blocks, launches, size = 4, 2000, 4096
	d, err := cpu.New()
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	s, err := d.NewStream()
	require.NoError(t, err)
	host, err := d.AllocHost(blocks * size)
	require.NoError(t, err)
	out, err := d.Alloc(launches * size)
	require.NoError(t, err)
	r, err := mempool.NewRing(d, host, blocks, size)
	require.NoError(t, err)

	for i := range launches {
		b, err := r.Take(t.Context())
		require.NoError(t, err)
		require.Equal(t, device.HostSpace, b.Buffer().Space())
		copy(b.Buffer().Bytes(), bytes.Repeat([]byte{byte(i)}, size))
		require.NoError(t, s.Copy(out.At(int64(i)*size, size), b.Buffer()))
		require.NoError(t, r.Release(b, s))
	}
	require.NoError(t, s.Synchronize(t.Context()))
	for i := range launches {
		got := out.At(int64(i)*size, size).Bytes()
		require.Equal(t, size, bytes.Count(got, []byte{byte(i)}), "launch %d", i)
	}
	st := r.Stats()
	assert.Equal(t, int64(launches), st.Taken)
	assert.Zero(t, st.InUse)
	require.NoError(t, r.Close())
}
