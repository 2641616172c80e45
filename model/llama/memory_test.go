package llama_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/checked"
	"goatb/device/cpu"
	"goatb/model/llama"
	"goatb/status"
	"goatb/tensor"
)

// longModel has room for 4000 positions.
func longModel(t *testing.T) *llama.Weights {
	t.Helper()
	cfg := smallConfig()
	cfg.MaxSeq = 4000
	w, err := llama.Random(cfg, 7)
	require.NoError(t, err)
	return w
}

// rowsOf are n rows of sequence 0.
func rowsOf(n int) (rows []llama.Row) {
	for _, id := range text(n, 8) {
		rows = append(rows, llama.Row{Token: id})
	}
	return rows
}

// TestManyShapesInBoundedMemory runs prompts of sixty lengths, twice, on a device
// whose memory holds some twenty of them at once. A prompt that needs more than
// there is fails, as often as it is tried, and leaves nothing behind.
func TestManyShapesInBoundedMemory(t *testing.T) {
	const rings = 32 * 3 << 20
	w := longModel(t)
	s := open(t, w, tensor.Float32, llama.Options{Sequences: 1, BlockSize: 16}, newDevice(t, cpu.WithMemoryLimit(rings+5<<20)))
	want := map[int][][]float32{}
	for round := range 2 {
		for n := 100; n < 160; n++ {
			got := forward(t, s, rowsOf(n)...)
			if round == 0 {
				want[n] = got
			}
			require.Equal(t, want[n], got, "%d rows", n)
			require.NoError(t, s.Reset(0))
		}
	}
	for range 20 {
		_, err := s.Forward(t.Context(), rowsOf(4000), []int32{0})
		require.ErrorIs(t, err, status.ErrOutOfDeviceMemory)
		require.Zero(t, s.Length(0))
	}
	require.Equal(t, want[100], forward(t, s, rowsOf(100)...))
}

// TestNothingLeaksOrRaces decodes on a device that finds uses of freed memory,
// accesses that nothing orders and, at the end, what was not freed.
func TestNothingLeaksOrRaces(t *testing.T) {
	w := small(t)
	for _, policy := range policies {
		t.Run("policy="+policy, func(t *testing.T) {
			inner, err := cpu.New()
			require.NoError(t, err)
			dev := checked.New(inner, checked.WithLeaks())
			c := newContext(t, dev, atb.WithPolicy(policy))
			m, err := llama.Upload(c, w, tensor.Float32)
			require.NoError(t, err)
			s, err := llama.NewSession(c, m, llama.Options{Sequences: 1, BlockSize: 3})
			require.NoError(t, err)
			for range 2 {
				for n := 1; n <= 20; n++ {
					forward(t, s, rowsOf(n)...)
					forward(t, s, rowsOf(1)...)
					require.NoError(t, s.Reset(0))
				}
			}
			require.NoError(t, s.Close())
			require.NoError(t, m.Close())
			require.NoError(t, c.Close())
			require.NoError(t, dev.Close())
		})
	}
}
