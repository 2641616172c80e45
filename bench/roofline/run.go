package roofline

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"
)

// Row is the result of a case.
type Row struct {
	Name, Shape, DType string
	Threads            int
	// Time is the median of a run.
	Time time.Duration
	// GFlops and GBytes are rates; GFlops is 0 for cases that only move data.
	GFlops, GBytes float64
	// Limit names what bounds the case: "fma", "memory" or "copy". Fraction is
	// the median time that the limit alone takes for as many multiply-adds or
	// bytes, divided by Time.
	Limit    string
	Fraction float64
}

// Measure runs a case for about the given time, in turns with its limit: twice each,
// of which the second counts, as one operation of many in a row finds its helpers
// awake and its workspace in a cache.
func Measure(ctx context.Context, c *Case, l *Limits, budget time.Duration) (Row, error) {
	b, err := Open(c, l.Threads, BeyondCaches)
	if err != nil {
		return Row{}, err
	}
	defer func() { _ = b.Close() }() // frees: the result stands
	for range max(2, len(b.calls)) {
		if err := b.Run(ctx); err != nil {
			return Row{}, err
		}
	}
	runtime.GC() // what building the case left takes no time from it later
	name, limit := l.Bound(c)
	limit()
	var least, times []time.Duration
	for start := time.Now(); len(times) < 5 || time.Since(start) < budget; {
		least = append(least, limit())
		if err := b.Run(ctx); err != nil {
			return Row{}, err
		}
		at := time.Now()
		if err := b.Run(ctx); err != nil {
			return Row{}, err
		}
		times = append(times, time.Since(at))
	}
	r := Row{Name: c.Name, Shape: c.Shape, DType: c.DType, Threads: l.Threads, Time: Median(times), Limit: name}
	ns := float64(r.Time.Nanoseconds())
	r.GBytes = c.Bytes / ns
	if c.Peak != "" {
		r.GFlops = c.Flops / ns
	}
	r.Fraction = float64(Median(least).Nanoseconds()) / ns
	return r, nil
}

// Median returns the middle of values, the upper one of two; it leaves them as they
// are. Values must not be empty.
func Median[T cmp.Ordered](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
