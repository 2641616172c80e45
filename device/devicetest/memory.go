package devicetest

import (
	"math"
	"math/rand/v2"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

var memoryChecks = []check{
	{"sizes and alignment", checkSizes},
	{"zero filled again after reuse", checkZeroed},
	{"many small allocations", checkManySmall},
	{"reserved areas", checkReserved},
	{"refused sizes", checkRefusedSizes},
	{"refused frees", checkRefusedFrees},
}

func checkSizes(b *bed) {
	for _, size := range []int64{1, 63, 4095, 4096, 4097, 65536, 1<<20 + 3, 5 << 20} {
		for _, buf := range []device.Buffer{b.alloc(size), b.host(size)} {
			require.Equal(b, size, buf.Size())
			require.Len(b, buf.Bytes(), int(size))
			require.True(b, buf.Live())
			require.Zero(b, address(buf.Bytes())%4096, "address of %d bytes", size)
			require.Equal(b, make([]byte, size), buf.Bytes(), "%d bytes", size)
			copy(buf.Bytes(), pattern(int(size), 1))
			require.NoError(b, b.dev.Free(buf))
			require.False(b, buf.Live())
		}
	}
	require.Equal(b, device.DeviceSpace, b.alloc(8).Space())
	require.Equal(b, device.HostSpace, b.host(8).Space())
	empty := b.alloc(0)
	require.Zero(b, empty.Size())
	require.Empty(b, empty.Bytes())
	require.NoError(b, b.dev.Free(empty))
	require.ErrorIs(b, b.dev.Free(empty), status.ErrInvalidParam)
}

func checkZeroed(b *bed) {
	for _, size := range []int64{16, 4096, 40000, 3 << 20} {
		for range 4 {
			buf := b.alloc(size)
			require.Equal(b, make([]byte, size), buf.Bytes(), "%d bytes", size)
			copy(buf.Bytes(), repeat(0xEE, int(size)))
			require.NoError(b, b.dev.Free(buf))
		}
	}
}

func checkManySmall(b *bed) {
	rng := rand.New(rand.NewPCG(1, 2))
	live := map[int]device.Buffer{}
	for i := range 3000 {
		buf := b.alloc(1 + rng.Int64N(300))
		copy(buf.Bytes(), pattern(int(buf.Size()), i))
		live[i] = buf
		if victim := rng.IntN(i + 1); i%3 == 0 {
			if old, ok := live[victim]; ok {
				require.Equal(b, pattern(int(old.Size()), victim), old.Bytes(), "allocation %d", victim)
				require.NoError(b, b.dev.Free(old))
				delete(live, victim)
			}
		}
	}
	for i, buf := range live {
		require.Equal(b, pattern(int(buf.Size()), i), buf.Bytes(), "allocation %d", i)
	}
}

// checkReserved uses both ends of a large area: it is zeroed, freed and counted
// like any other memory.
func checkReserved(b *bed) {
	buf, err := b.dev.Reserve(64 << 20)
	require.NoError(b, err)
	mem := buf.Bytes()
	require.Zero(b, address(mem)%4096)
	require.Zero(b, mem[0])
	require.Zero(b, mem[len(mem)-1])
	mem[0], mem[len(mem)-1] = 1, 2
	require.NoError(b, b.dev.Free(buf))
	require.ErrorIs(b, b.dev.Free(buf), status.ErrInvalidParam)
}

func checkRefusedSizes(b *bed) {
	_, err := b.dev.Alloc(-1)
	assert.ErrorIs(b, err, status.ErrInvalidParam)
	_, err = b.dev.Reserve(-1)
	assert.ErrorIs(b, err, status.ErrInvalidParam)
	_, err = b.dev.AllocHost(-1)
	assert.ErrorIs(b, err, status.ErrInvalidParam)
	_, err = b.dev.Alloc(math.MaxInt64)
	assert.ErrorIs(b, err, status.ErrOutOfDeviceMemory)
	_, err = b.dev.Reserve(math.MaxInt64)
	assert.ErrorIs(b, err, status.ErrOutOfDeviceMemory)
	_, err = b.dev.AllocHost(math.MaxInt64)
	assert.ErrorIs(b, err, status.ErrOutOfHostMemory)
}

func checkRefusedFrees(b *bed) {
	buf := b.alloc(256)
	window, err := buf.Slice(0, 128)
	require.NoError(b, err)
	other := b.open(b.T)
	defer func() { assert.NoError(b, other.Close()) }()
	theirs, err := other.Alloc(64)
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		buf  device.Buffer
	}{
		{"no memory", device.Buffer{}},
		{"window", window},
		{"wrapped memory", device.Wrap(make([]byte, 64))},
		{"wrapped host memory", device.WrapHost(make([]byte, 64))},
		{"memory of another device", theirs},
	} {
		assert.ErrorIs(b, b.dev.Free(c.buf), status.ErrInvalidParam, c.name)
	}
	require.True(b, buf.Live())
	require.True(b, theirs.Live())
	require.NoError(b, b.dev.Free(buf))
	require.ErrorIs(b, b.dev.Free(buf), status.ErrInvalidParam, "second free")
}
