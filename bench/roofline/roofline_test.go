package roofline

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/tensor"
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

// Benches beside each other take the calls in turn, so that none runs on weights that
// another one has just left in caches.
func TestBeside(t *testing.T) {
	c := Packed(tensor.Float32, 1, 64, 64)
	b, err := Open(&c, 1, 4*64*64*4)
	require.NoError(t, err)
	o, err := b.Beside()
	require.NoError(t, err)
	n := len(b.calls)
	require.Len(t, o.calls, n)
	for i := range 2 * n {
		who := []*Bench{b, o}[i%2]
		require.NoError(t, who.Run(t.Context()))
		assert.Equal(t, i%n, who.last)
		_, err := who.Launches()
		require.NoError(t, err)
	}
	require.NoError(t, o.Close())
	require.NoError(t, b.Close())
}

func TestMeasure(t *testing.T) {
	limits, err := MeasureLimits(1, 1<<20)
	require.NoError(t, err)
	defer func() { assert.NoError(t, limits.Close()) }()
	assert.Positive(t, limits.Read)
	move, multiply := rows()[0], square(64)
	for _, c := range []*Case{&move, &multiply} {
		r, err := Measure(context.Background(), c, limits, time.Nanosecond)
		require.NoError(t, err)
		assert.Positive(t, r.Time, c.Name)
		assert.Positive(t, r.Fraction, c.Name)
		assert.Positive(t, r.GBytes, c.Name)
		assert.Equal(t, c.Peak != "", r.GFlops > 0, c.Name)
	}
	bad := Case{Name: "bad", Build: func(*Bench) error { return errors.New("no such shape") }}
	_, err = Measure(context.Background(), &bad, limits, 0)
	require.ErrorContains(t, err, "no such shape")
}

// What bounds a case follows from the rates; the limit's time is that of the
// case's own work.
func TestBound(t *testing.T) {
	l, err := MeasureLimits(1, 1<<22)
	require.NoError(t, err)
	defer func() { assert.NoError(t, l.Close()) }()
	for _, c := range []struct {
		want string
		Case
	}{
		{"copy", Case{Bytes: 1 << 20}},
		{"memory", Case{Flops: 10, Bytes: 1 << 20, Peak: "f32"}},
		{"fma", Case{Flops: 1e6, Bytes: 10, Peak: "f32"}},
		{"fma", Case{Flops: 1e6, Bytes: 10, Peak: "f16"}},
	} {
		want := c.want
		if len(l.Peaks) == 0 && want == "fma" {
			want = "memory" // no loop is known for this processor
		}
		got, limit := l.Bound(&c.Case)
		assert.Equal(t, want, got)
		assert.Positive(t, limit())
	}
}

func TestFastest(t *testing.T) {
	slow := Limits{Peaks: map[string]float64{"f32": 100, "bf16": 50, "int8": 400}}
	assert.Equal(t, "f32", slow.fastest("bf16"))
	assert.Equal(t, "f32", slow.fastest("f16"))
	assert.Equal(t, "int8", slow.fastest("int8"))
	fast := Limits{Peaks: map[string]float64{"f32": 100, "bf16": 200}}
	assert.Equal(t, "bf16", fast.fastest("bf16"))
	assert.Empty(t, new(Limits).fastest("f32"))
}
