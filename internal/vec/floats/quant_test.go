package floats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/internal/cpu"
)

// TestQuantSymmetricHalves quantises all numbers of a 16-bit type up to some tops: the
// smallest and largest ones, infinity, and random ones of every magnitude.
func TestQuantSymmetricHalves(t *testing.T) {
	for _, level := range cpu.Levels(cpu.Detected()) {
		t.Run("cpu="+level.String(), func(t *testing.T) {
			defer cpu.Limit(level)()
			checkQuantSymmetricHalves(t)
		})
	}
}

func checkQuantSymmetricHalves(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	buf := make([]float32, BufferElements)
	value := func(e Element, h uint16) float32 { return At(e, device.BytesOf([]uint16{h}), 0) }
	for _, e := range []Element{F16, BF16} {
		all := make([]uint16, 1<<16)
		for i := range all {
			all[i] = uint16(i)
		}
		inf := all[0x7c00]
		if e == BF16 {
			inf = 0x7f80
		}
		tops := []uint16{0, 1, 2, 3, inf - 1, inf}
		for range 60 {
			tops = append(tops, uint16(r.IntN(int(inf))))
		}
		for _, h := range tops {
			top := value(e, h)
			var src []uint16
			for _, x := range all {
				if v := value(e, x); !(v > top || v < -top) {
					src = append(src, x)
				}
			}
			src = src[r.IntN(5):]
			require.Equal(t, top, MaxAbs(e, device.BytesOf(src), buf))
			got := make([]int8, len(src)+1)
			got[len(src)] = 99
			QuantSymmetric(e, got[:len(src)], device.BytesOf(src), top, buf)
			for i, x := range src {
				v, want := float64(value(e, x))*127/float64(top), int8(0)
				if v == v {
					want = int8(math.RoundToEven(v))
				}
				if got[i] != want {
					require.Equal(t, want, got[i], "type %d, top %x, element %x", e, h, x)
				}
			}
			require.Equal(t, int8(99), got[len(src)])
		}
	}
}

func BenchmarkQuantSymmetric(b *testing.B) {
	const n = 4096
	src, dst, buf := newArray(BF16, n, 0).fill(rand.New(rand.NewPCG(1, 1))), make([]int8, n), make([]float32, BufferElements)
	b.SetBytes(3 * n)
	for b.Loop() {
		QuantSymmetric(BF16, dst, src.bytes(), 4, buf)
	}
}
