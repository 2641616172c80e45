package sink

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestProfiles(t *testing.T) {
	for name, want := range map[string]Profile{
		"910B": {Sinks: true, Prefetch: 8}, "910B2C": {Sinks: true, Prefetch: 8}, "Ascend910B4": {Sinks: true, Prefetch: 8}, "ascend910b": {Sinks: true, Prefetch: 8},
		"910_9382": {Sinks: true, Prefetch: 8}, "950PR_9599": {Sinks: true, Prefetch: 8}, "350_354f": {Sinks: true, Prefetch: 8}, "350_355e": {Sinks: true, Prefetch: 8},
		"310P3": {Sinks: true, Prefetch: 10}, "310P7": {Sinks: true, Prefetch: 10}, "310P-design": {Sinks: true, Prefetch: 5},
		"910B4-1": {Sinks: true, Prefetch: NoPrefetch}, "910_9362": {Sinks: true, Prefetch: NoPrefetch}, "910_9363": {Sinks: true, Prefetch: NoPrefetch},
		"031": {Prefetch: NoPrefetch}, "035A": {Prefetch: NoPrefetch}, "310B1": {Prefetch: NoPrefetch}, "910A": {Prefetch: NoPrefetch}, "910PremiumA": {Prefetch: NoPrefetch},
	} {
		got, err := ProfileOf(name)
		require.NoError(t, err, name)
		want.Name = name
		assert.Equal(t, want, got)
		n, err := got.Nops()
		if want.Prefetch < 0 {
			require.ErrorIs(t, err, status.ErrInvalidParam, name)
			assert.ErrorContains(t, err, "SoC profile "+name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, want.Prefetch, n)
	}
	for _, name := range []string{"", "ascend", "910", "910B5", "310P3x", "350", " 910B"} {
		_, err := ProfileOf(name)
		require.ErrorIs(t, err, status.ErrInvalidParam, name)
		assert.ErrorContains(t, err, "910_9382")
	}
	n, err := (&Profile{Name: "none", Prefetch: 0}).Nops()
	require.NoError(t, err)
	assert.Zero(t, n)
	_, err = (&Profile{Name: "many", Prefetch: MaxPrefetch + 1}).Nops()
	assert.ErrorIs(t, err, status.ErrInvalidParam)
}
