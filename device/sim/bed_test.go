package sim_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/device/trace"
)

// cost is a changed parameter.
type cost struct {
	name  string
	value float64
}

// round gives every cost that the tests look at a round figure.
var rounds = []cost{
	{"launch_host", 10}, {"launch_args_per_kib", 8}, {"op_wrapper_host", 3}, {"launch_to_start", 100}, {"task_gap", 2}, {"task_fetch", 5},
	{"queue_depth", 16}, {"prefetch", 4}, {"copy_host", 20}, {"copy_latency", 50}, {"copy_bw_pinned", 10}, {"copy_bw_pageable", 1},
	{"event_record_host", 7}, {"event_wait_host", 6}, {"event_record_dev", 1}, {"event_wait_dev", 3}, {"event_create_host", 0},
	{"query_host", 4}, {"stream_sync", 9}, {"alloc_host", 0}, {"setup_host", 2}, {"plan_host", 1},
	{"tiling_host_vector", 11}, {"tiling_host_norm", 12}, {"tiling_host_matmul", 13}, {"tiling_host_attention", 14}, {"kernel_cache_hit_host", 0.25},
	{"kernel_fixed_vector", 30}, {"kernel_fixed_matmul", 40}, {"kernel_fixed_attention", 60},
	{"cube_peak", 1}, {"cube_eff", 0.5}, {"overlap_beta", 0.25}, {"mem_bw", 2}, {"mem_eff", 0.5}, {"l2_size", 1}, {"l2_read_bw", 4}, {"l2_write_bw", 8},
	{"cores", 8},
}

// bed is a simulated device with one stream.
type bed struct {
	*testing.T
	dev *sim.Device
	s   device.Stream
	rec *trace.Recorder
}

func newBed(t *testing.T, opts ...sim.Option) *bed {
	t.Helper()
	rec := trace.New("bed", 0)
	dev, err := sim.New(roundProfile(t), append([]sim.Option{sim.WithRecorder(rec)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return &bed{T: t, dev: dev, s: newStream(t, dev), rec: rec}
}

func roundProfile(t *testing.T, more ...cost) *profile.Profile {
	t.Helper()
	p, err := profile.ByName("ascend910b")
	require.NoError(t, err)
	for _, c := range append(rounds, more...) {
		p, err = p.With(c.name, c.value)
		require.NoError(t, err)
	}
	return p
}

func newStream(t *testing.T, d device.Device) device.Stream {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	return s
}

func newEvent(t *testing.T, d device.Device) device.Event {
	t.Helper()
	e, err := d.NewEvent()
	require.NoError(t, err)
	return e
}

// now is the host's time in microseconds.
func (b *bed) now() float64 { return micros(b.dev.Host().Now()) }

func micros(t time.Time) float64 { return float64(t.UnixNano()) / 1e3 }

func (b *bed) sync() {
	b.Helper()
	require.NoError(b, b.s.Synchronize(b.Context()))
}

// program is a kernel of a class that does so many flops and bytes.
func program(name string, c device.Class, flops, bytes int64) *device.Program {
	return &device.Program{
		Name: name, Class: c, Run: func(*device.Args, int) error { return nil },
		Cost: func([]byte, uint64, int) device.Cost { return device.Cost{Flops: flops, Bytes: bytes, Class: c} },
	}
}

// launch is one of a program that is free but for its fixed part.
func launch(p *device.Program, blocks int, bufs ...device.Buffer) *device.Launch {
	return &device.Launch{Program: p, Blocks: blocks, Inline: []byte{1}, Buffers: bufs, Inputs: len(bufs)}
}

var empty = program("binary/float", device.Vector, 1, 0)

// tasks returns start and end of each task of a kind, in microseconds.
func (b *bed) tasks(kind string) (list [][2]float64) {
	for _, t := range b.rec.Tasks() {
		if t.Kind == kind && t.Engine == "" {
			list = append(list, [2]float64{micros(t.Start), micros(t.End)})
		}
	}
	return list
}

// exactly compares times to a thousandth of a nanosecond.
func exactly(t *testing.T, want, got float64, text ...any) {
	t.Helper()
	require.InDelta(t, want, got, 1e-6, text...)
	require.False(t, math.IsNaN(got))
}
