package roofline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every case of a moderate size can be built and run on one and two threads.
func TestCases(t *testing.T) {
	for _, c := range Cases() {
		if c.Flops > 3e9 || testing.Short() && c.Bytes > 1<<25 {
			continue
		}
		for threads := 1; threads <= 2; threads++ {
			b, err := Open(&c, threads, 0)
			require.NoError(t, err)
			require.NoError(t, b.Run(t.Context()))
			require.NoError(t, b.Close())
		}
	}
}

func TestMeasure(t *testing.T) {
	limits := MeasureLimits(1, make([]byte, 1<<20))
	assert.Positive(t, limits.Read)
	move, multiply := rows()[0], square(64)
	for _, c := range []*Case{&move, &multiply} {
		r, err := Measure(context.Background(), c, &limits, time.Nanosecond)
		require.NoError(t, err)
		assert.Positive(t, r.Time, c.Name)
		assert.Positive(t, r.Fraction, c.Name)
		assert.Positive(t, r.GBytes, c.Name)
		assert.Equal(t, c.Peak != "", r.GFlops > 0, c.Name)
	}
	bad := Case{Name: "bad", Build: func(*Bench) error { return errors.New("no such shape") }}
	_, err := Measure(context.Background(), &bad, &limits, 0)
	require.ErrorContains(t, err, "no such shape")
}

func TestBound(t *testing.T) {
	l := Limits{Peaks: map[string]float64{"f32": 100}, Read: 10}
	what, least := bound(&Case{Flops: 1000, Bytes: 10, Peak: "f32"}, &l, nil)
	assert.Equal(t, "fma", what)
	assert.InDelta(t, 10, least, 1e-9)
	what, least = bound(&Case{Flops: 1000, Bytes: 1000, Peak: "bf16"}, &l, nil)
	assert.Equal(t, "memory", what)
	assert.InDelta(t, 100, least, 1e-9)
	what, least = bound(&Case{Bytes: 1000}, &l, []time.Duration{7, 3, 5})
	assert.Equal(t, "copy", what)
	assert.InDelta(t, 5, least, 1e-9)
}
