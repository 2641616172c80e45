package tilingtest

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/tiling"
)

var sizes = []int{8, 4096, 1, 640, 64}

func oneLaunch(b *bed) {
	o := b.newOp(sizes)
	all := o.run(0)
	b.sync()
	b.check(all...)
	moved := int64(0)
	for _, n := range sizes {
		moved += int64(n)
	}
	assert.GreaterOrEqual(b, o.job.Moved, moved)
}

// Operations of several shapes take turns and go round the rings many times.
func manyLaunches(b *bed) {
	rng := rand.New(rand.NewPCG(5, 5))
	ops := []*op{b.newOp(sizes), b.newOp([]int{4000}), b.newOp([]int{16, 16, 16})}
	var all []seen
	for n := range 100 {
		all = append(all, ops[rng.IntN(len(ops))].run(n)...)
	}
	b.sync()
	b.check(all...)
}

func twoHalves(b *bed) {
	o := b.newOp(sizes)
	var all []seen
	for n := range 20 {
		all = append(all, o.bind(n)...)
		require.NoError(b, o.firstHalf())
		require.NoError(b, o.secondHalf())
	}
	b.sync()
	b.check(all...)
}

// Several operations are prepared before the first is launched, in another
// order, as deep as the smallest ring allows.
func halvesOfSeveral(b *bed) {
	ops := []*op{b.newOp(sizes), b.newOp([]int{4000, 8})}
	var all []seen
	for n := range 30 {
		for i, o := range ops {
			all = append(all, o.bind(2*n+i)...)
			require.NoError(b, o.firstHalf())
		}
		for i := range ops {
			require.NoError(b, ops[(i+n)%2].secondHalf())
		}
	}
	b.sync()
	b.check(all...)
}

func kernelsLeftOut(b *bed) {
	o := b.newOp(sizes)
	var all []seen
	for n := range 10 {
		for k := range o.skip {
			o.skip[k] = (n+k)%3 == 0
		}
		all = append(all, o.run(n)...)
	}
	for k := range o.skip {
		o.skip[k] = true
	}
	o.run(10)
	b.sync()
	b.check(all...)
}

func noKernels(b *bed) {
	o := b.newOp(nil)
	for n := range 10 {
		o.run(n)
	}
	b.sync()
}

func severalStreams(b *bed) {
	o := b.newOp(sizes, 0, 1, 1, 0, 1)
	var all []seen
	for n := range 20 {
		all = append(all, o.run(n)...)
	}
	b.sync()
	b.check(all...)
}

func manyKernels(b *bed) {
	many := make([]int, 120)
	for i := range many {
		many[i] = 64
	}
	o, p := b.newOp(many), b.newOp(many)
	var all []seen
	for n := range 10 {
		all = append(all, o.bind(2*n)...)
		require.NoError(b, o.firstHalf())
		all = append(all, p.bind(2*n+1)...)
		require.NoError(b, p.firstHalf())
		require.NoError(b, o.secondHalf())
		require.NoError(b, p.secondHalf())
	}
	b.sync()
	b.check(all...)
}

// While the execute stream is held, launches go on until the ring is full; then
// the host waits and counts, and nothing that a kernel is to read is
// overwritten. A policy without rings goes on.
func heldExecuteStream(b *bed) {
	const launches = 10
	release := b.hold(b.streams[0])
	ops := make([]*op, launches)
	all := make([][]seen, launches)
	for n := range ops {
		ops[n] = b.newOp(sizes)
		all[n] = ops[n].bind(n)
	}
	done := make(chan int)
	go func() {
		defer close(done)
		for n := range ops {
			if err := ops[n].execute(); err != nil {
				b.Errorf("launch %d: %v", n, err)
			}
			done <- n
		}
	}()
	last := -1
	for waiting := false; !waiting && last < launches-1; {
		synctest.Wait()
		select {
		case last = <-done:
		default:
			waiting = true
		}
	}
	if b.policy.UsesRings() {
		assert.GreaterOrEqual(b, last, min(b.rings.host, b.rings.device)-1, "a launch for each block")
		assert.Less(b, last, max(b.rings.host, b.rings.device), "then a wait")
		assert.Positive(b, b.stalls())
	} else {
		assert.Equal(b, launches-1, last)
		assert.Zero(b, b.stalls())
	}
	for n := range ops {
		b.untouched(all[n]...)
	}
	release()
	for last < launches-1 {
		last = <-done
	}
	<-done
	b.sync()
	for n := range ops {
		b.check(all[n]...)
	}
}

// A kernel does not run before its tiling has come, and a host block is in use
// until it was copied.
func heldCopyStream(b *bed) {
	release := b.hold(b.copies)
	o := b.newOp(sizes)
	all := o.run(0)
	synctest.Wait()
	if b.policy.UsesCopyStream() {
		b.untouched(all...)
		assert.Equal(b, 1, b.host.Stats().InUse)
		assert.Equal(b, 1, b.device.Stats().InUse)
	}
	release()
	b.sync()
	b.check(all...)
}

// An operation that ran under another policy before, at the same places.
func afterAnotherPolicy(b *bed) {
	own := b.policy
	o := b.newOp(sizes)
	for i, other := range tiling.Policies() {
		b.policy = other
		all := o.run(2 * i)
		b.policy = own
		all = append(all, o.run(2*i+1)...)
		b.sync()
		b.check(all...)
	}
}

// The block of a launch is in use as long as one of its streams is at work.
func heldOtherStream(b *bed) {
	o := b.newOp(sizes, 0, 1, 0, 1, 1)
	release := b.hold(b.streams[1])
	all := o.run(0)
	synctest.Wait()
	if b.policy.UsesRings() {
		assert.Equal(b, 1, b.device.Stats().InUse)
	}
	b.untouched(all[1], all[3], all[4])
	release()
	b.sync()
	b.check(all...)
}

// One goroutine prepares while another launches.
func twoGoroutines(b *bed) {
	const launches = 200
	type prepared struct {
		o *op
		s []seen
	}
	ready, free := make(chan prepared), make(chan *op, 2)
	for range 2 {
		free <- b.newOp(sizes)
	}
	go func() {
		defer close(ready)
		for n := range launches {
			o := <-free
			s := o.bind(n)
			if err := o.firstHalf(); err != nil {
				b.Errorf("first half of %d: %v", n, err)
				return
			}
			ready <- prepared{o, s}
		}
	}()
	var all []seen
	for p := range ready {
		require.NoError(b, p.o.secondHalf())
		all = append(all, p.s...)
		free <- p.o
	}
	b.sync()
	require.Len(b, all, launches*len(sizes))
	b.check(all...)
}

func firstHalf(b *bed) {
	o := b.newOp(sizes, 0, 1)
	o.bind(0)
	require.NoError(b, o.firstHalf())
	for i, s := range b.streams {
		assert.Zero(b, s.calls, "calls of execute stream %d", i)
	}
	o.b.policy.Abort(&o.job)
	for i, s := range b.streams {
		assert.Zero(b, s.calls, "calls of execute stream %d by the abort", i)
	}
}

func secondHalf(b *bed) {
	o := b.newOp(sizes, 0, 1)
	all := o.bind(0)
	require.NoError(b, o.firstHalf())
	before := b.copies.calls
	require.NoError(b, o.secondHalf())
	assert.Equal(b, before, b.copies.calls, "calls of the copy stream")
	b.sync()
	b.check(all...)
}

// abortAnywhere stops a launch at each of its steps; the rings have their blocks
// back and the next launches are right.
func abortAnywhere(b *bed) {
	o := b.newOp(sizes)
	for _, split := range []bool{false, true} {
		for steps := range 2 + 3*len(sizes) + 6 {
			o.bind(steps)
			o.partly(steps, split)
			b.policy.Abort(&o.job)
			b.policy.Abort(&o.job)
			b.sync()
			require.Zero(b, b.host.Stats().InUse, "host blocks after %d steps", steps)
			require.Zero(b, b.device.Stats().InUse, "device blocks after %d steps", steps)
			all := o.run(1000 + steps)
			b.sync()
			b.check(all...)
		}
	}
}

// partly does the first steps of a launch.
func (o *op) partly(steps int, split bool) {
	p, j := o.b.policy, &o.job
	script := []func() error{func() error { j.Started = false; return p.Begin(j) }}
	move := func(k int) func() error { return func() error { return p.Move(j, k) } }
	enqueue := func(k int) func() error { return func() error { return o.enqueue(k) } }
	flush := func() error { return p.Flush(j) }
	group := p.Group()
	if split || group == 0 {
		group = len(o.sizes)
	} else {
		script = append(script, o.start)
	}
	for from := 0; from < len(o.sizes); from += group {
		to := min(from+group, len(o.sizes))
		for k := from; k < to; k++ {
			script = append(script, move(k))
		}
		script = append(script, func() error { return p.Send(j, from, to) })
		if split || p.Group() == 0 {
			script = append(script, flush, o.start)
		}
		for k := from; k < to; k++ {
			script = append(script, enqueue(k))
		}
	}
	if !split && p.Group() > 0 {
		script = append(script, flush)
	}
	script = append(script, o.end)
	for _, step := range script[:min(steps, len(script))] {
		require.NoError(o.b, step())
	}
}

// A launch that is given up half enqueued: its block stays in use until the
// kernels that were enqueued are done.
func abortHeld(b *bed) {
	release := b.hold(b.streams[0])
	o := b.newOp(sizes)
	all := o.bind(0)
	p, j := b.policy, &o.job
	require.NoError(b, o.firstHalf())
	require.NoError(b, o.start())
	require.NoError(b, o.enqueue(0))
	require.NoError(b, o.enqueue(1))
	p.Abort(j)
	synctest.Wait()
	if p.UsesRings() {
		assert.Equal(b, 1, b.device.Stats().InUse)
	}
	b.untouched(all...)
	release()
	b.sync()
	b.check(all[:2]...)
	b.untouched(all[2:]...)
}

// A launch that is given up while its copies wait: the device block stays in use
// until they are done, though no kernel was enqueued.
func abortHeldCopies(b *bed) {
	release := b.hold(b.copies)
	o := b.newOp(sizes)
	o.bind(0)
	require.NoError(b, o.firstHalf())
	require.NoError(b, o.start())
	b.policy.Abort(&o.job)
	synctest.Wait()
	if b.policy.UsesCopyStream() {
		assert.Equal(b, 1, b.device.Stats().InUse)
	}
	release()
	b.sync()
	all := o.run(1)
	b.sync()
	b.check(all...)
}

// A prepared launch that is given up while its copies wait.
func abortPrepared(b *bed) {
	release := b.hold(b.copies)
	o := b.newOp(sizes)
	o.bind(0)
	require.NoError(b, o.firstHalf())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.policy.Abort(&o.job)
	}()
	synctest.Wait()
	if b.policy.UsesCopyStream() {
		assert.Equal(b, 1, b.device.Stats().InUse)
	}
	release()
	<-done
	all := o.run(1)
	b.sync()
	b.check(all...)
}

func failingTiling(b *bed) {
	o := b.newOp(sizes)
	for k := range sizes {
		o.fail = k
		o.bind(k)
		require.ErrorIs(b, o.execute(), errTiling)
		b.policy.Abort(&o.job)
		o.bind(k)
		require.ErrorIs(b, o.firstHalf(), errTiling)
		b.policy.Abort(&o.job)
	}
	o.fail = -1
	all := o.run(100)
	b.sync()
	b.check(all...)
}

// On a closed stream a launch fails and gives its blocks back.
func closedStream(b *bed) {
	require.NoError(b, b.streams[0].Close())
	o := b.newOp(sizes)
	for n := range 2 * max(b.rings.host, b.rings.device) {
		o.bind(n)
		require.Error(b, o.execute())
		b.policy.Abort(&o.job)
	}
}

func allocations(b *bed) {
	o := b.newOp(sizes)
	o.bind(0)
	step := func() {
		if err := o.execute(); err != nil {
			b.Error(err)
		}
		for _, s := range b.streams {
			for !s.Query() {
				runtime.Gosched()
			}
		}
	}
	for range 50 {
		step()
	}
	assert.Zero(b, testing.AllocsPerRun(100, step))
	b.sync()
}
