package roofline

import (
	"context"
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
	// the time that the limit allows, divided by Time.
	Limit    string
	Fraction float64
}

// Measure runs a case for about the given time, in turns with its limit where
// that is a copy, and holds it against l.
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
	var moved, times []time.Duration
	var limit func() time.Duration
	if c.Peak == "" {
		limit = copier(l.Threads, int64(c.Bytes))
		limit()
	}
	for start := time.Now(); len(times) < 5 || time.Since(start) < budget; {
		if limit != nil {
			moved = append(moved, limit())
		}
		at := time.Now()
		if err := b.Run(ctx); err != nil {
			return Row{}, err
		}
		times = append(times, time.Since(at))
	}
	r := Row{Name: c.Name, Shape: c.Shape, DType: c.DType, Threads: l.Threads, Time: median(times)}
	ns := float64(r.Time.Nanoseconds())
	r.GBytes = c.Bytes / ns
	if c.Peak != "" {
		r.GFlops = c.Flops / ns
	}
	least := 0.0
	r.Limit, least = bound(c, l, moved)
	r.Fraction = least / ns
	return r, nil
}

// bound returns what limits a case and the nanoseconds that it takes at least.
func bound(c *Case, l *Limits, moved []time.Duration) (string, float64) {
	if c.Peak == "" {
		return "copy", float64(median(moved).Nanoseconds())
	}
	peak := l.Peaks[c.Peak]
	if peak == 0 {
		peak = l.Peaks["f32"]
	}
	memory := c.Bytes / l.Read
	if peak == 0 || memory > c.Flops/peak {
		return "memory", memory
	}
	return "fma", c.Flops / peak
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
