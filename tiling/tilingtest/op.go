package tilingtest

import (
	"encoding/binary"
	"fmt"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/tiling"
)

// op is an operation with a few kernels, driven as a runner drives one. Its
// tilings lie in two sets that take turns, as slots of a cache do: a launch
// overwrites the tilings of the last but one.
type op struct {
	b       *bed
	job     tiling.Job
	sizes   []int
	skip    []bool
	tilings [2][][]byte
	fail    int // the kernel whose tiling fails, -1 for none
	several bool
	launch  int // the launch that is set up
}

// seen is where a kernel of a launch writes what it saw.
type seen struct {
	launch, kernel, size int
	out                  device.Buffer
}

// record is the kernel of the suite: it writes block dim, key, one byte for
// each block, and the tiling, to its operand.
var record = device.Program{Name: "test/record", Run: func(a *device.Args, block int) error {
	out := a.Mem(0)
	out[16+block] = byte(block)
	if block == 0 {
		binary.LittleEndian.PutUint64(out, uint64(a.Blocks))
		binary.LittleEndian.PutUint64(out[8:], a.Key)
		copy(out[64:], a.Tiling)
	}
	return nil
}}

// newOp makes an operation with tilings of the given sizes; kernel k runs on
// stream streams[k], 0 where there is none.
func (b *bed) newOp(sizes []int, streams ...int) *op {
	o := &op{b: b, sizes: sizes, skip: make([]bool, len(sizes)), fail: -1, launch: -1}
	o.job.Launches = make([]device.Launch, len(sizes))
	for k, n := range sizes {
		s := tiling.Slot{Offset: o.job.Bytes, Size: int64(n)}
		if k < len(streams) {
			s.Stream = streams[k]
			o.several = o.several || s.Stream != 0
		}
		o.job.Slots = append(o.job.Slots, s)
		o.job.Bytes += int64(n+63) / 64 * 64
		for i := range o.tilings {
			o.tilings[i] = append(o.tilings[i], make([]byte, n))
		}
		o.job.Launches[k] = device.Launch{Program: &record, Buffers: make([]device.Buffer, 1), Label: &device.Label{Op: "suite"}}
	}
	require.LessOrEqual(b, o.job.Bytes, int64(blockSize))
	o.job.Source, o.job.HostRing, o.job.DeviceRing, o.job.Events = o, b.host, b.device, b.events
	o.job.Copy = b.copies
	for _, s := range b.streams {
		o.job.Streams = append(o.job.Streams, s)
	}
	return o
}

// Tiling implements tiling.Source.
func (o *op) Tiling(k int) ([]byte, kernel.Grid, error) {
	if k == o.fail {
		return nil, kernel.Grid{}, errTiling
	}
	b := o.tilings[o.launch%2][k]
	fillPattern(b, o.launch, k)
	return b, gridOf(o.launch, k), nil
}

var errTiling = fmt.Errorf("no tiling today")

func gridOf(launch, k int) kernel.Grid {
	return kernel.Grid{Blocks: 1 + (launch+k)%5, Key: uint64(launch)<<32 | uint64(k)}
}

func fillPattern(b []byte, launch, k int) {
	for i := range b {
		b[i] = byte(i*7 + launch*31 + k*17 + i/251 + 1)
	}
}

// bind sets launch n up with fresh outputs.
func (o *op) bind(n int) []seen {
	o.launch = n
	var all []seen
	for k, size := range o.sizes {
		if o.skip[k] {
			continue
		}
		s := seen{n, k, size, o.b.out()}
		o.job.Launches[k].Buffers[0] = s.out
		all = append(all, s)
	}
	return all
}

// check compares what kernels saw with what they should have seen.
func (b *bed) check(all ...seen) {
	b.Helper()
	for _, s := range all {
		want := make([]byte, s.size)
		fillPattern(want, s.launch, s.kernel)
		got, g := s.out.Bytes(), gridOf(s.launch, s.kernel)
		place := fmt.Sprintf("launch %d kernel %d", s.launch, s.kernel)
		require.Equal(b, uint64(g.Blocks), binary.LittleEndian.Uint64(got), "%s: block dim", place)
		require.Equal(b, g.Key, binary.LittleEndian.Uint64(got[8:]), "%s: key", place)
		for i := range g.Blocks {
			require.Equal(b, byte(i), got[16+i], "%s: block %d", place, i)
		}
		require.Equal(b, want, got[64:64+s.size], "%s: tiling", place)
	}
}

// untouched checks that kernels have not run.
func (b *bed) untouched(all ...seen) {
	b.Helper()
	for _, s := range all {
		assert.Equal(b, byte(0xcc), s.out.Bytes()[0], "launch %d kernel %d ran", s.launch, s.kernel)
	}
}

// firstHalf begins the launch, moves every tiling and flushes.
func (o *op) firstHalf() error {
	p, j := o.b.policy, &o.job
	j.Started = false
	if err := p.Begin(j); err != nil {
		return err
	}
	if err := o.move(0, len(o.sizes)); err != nil {
		return err
	}
	return p.Flush(j)
}

// move moves the tilings of kernels from to to-1 and sends them.
func (o *op) move(from, to int) error {
	p, j := o.b.policy, &o.job
	first, last := -1, -1
	for k := from; k < to; k++ {
		if o.skip[k] {
			continue
		}
		if err := p.Move(j, k); err != nil {
			return err
		}
		if last = k; first < 0 {
			first = k
		}
	}
	if first < 0 {
		return nil
	}
	return p.Send(j, first, last+1)
}

// secondHalf enqueues the kernels.
func (o *op) secondHalf() error {
	if err := o.start(); err != nil {
		return err
	}
	for k := range o.sizes {
		if err := o.enqueue(k); err != nil {
			return err
		}
	}
	return o.end()
}

func (o *op) start() error {
	o.job.Started = true
	if err := o.b.policy.Start(&o.job); err != nil || !o.several {
		return err
	}
	if err := o.b.streams[0].Record(o.b.fork); err != nil {
		return err
	}
	return o.b.streams[1].Wait(o.b.fork)
}

func (o *op) enqueue(k int) error {
	if o.skip[k] {
		return nil
	}
	if err := o.b.policy.Before(&o.job, k); err != nil {
		return err
	}
	return o.job.Streams[o.job.Slots[k].Stream].Launch(&o.job.Launches[k])
}

func (o *op) join() error {
	if !o.several {
		return nil
	}
	if err := o.b.streams[1].Record(o.b.join); err != nil {
		return err
	}
	return o.b.streams[0].Wait(o.b.join)
}

func (o *op) end() error {
	if err := o.join(); err != nil {
		return err
	}
	return o.b.policy.End(&o.job)
}

// execute runs a whole launch as a runner's Execute does: a policy that moves
// groups of kernels has its halves interleaved.
func (o *op) execute() error {
	p, j := o.b.policy, &o.job
	if p.Group() == 0 {
		if err := o.firstHalf(); err != nil {
			return err
		}
		return o.secondHalf()
	}
	j.Started = false
	if err := p.Begin(j); err != nil {
		return err
	}
	if err := o.start(); err != nil {
		return err
	}
	for k := range o.sizes {
		if k%p.Group() == 0 {
			if err := o.move(k, min(k+p.Group(), len(o.sizes))); err != nil {
				return err
			}
		}
		if err := o.enqueue(k); err != nil {
			return err
		}
	}
	if err := p.Flush(j); err != nil {
		return err
	}
	return o.end()
}

// run binds and executes launch n.
func (o *op) run(n int) []seen {
	o.b.Helper()
	all := o.bind(n)
	require.NoError(o.b, o.execute())
	return all
}
