package tilingtest

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"goatb/device/cpu"
	"goatb/tiling"
)

// check is one property of a policy.
type check struct {
	name string
	run  func(b *bed)
	// asyncOnly leaves out the inline device, whose streams cannot be held
	// while a launch goes on.
	asyncOnly bool
}

var checks = []check{
	{"bytes/one launch", oneLaunch, false},
	{"bytes/many launches", manyLaunches, false},
	{"bytes/in two halves", twoHalves, false},
	{"bytes/halves of several launches", halvesOfSeveral, false},
	{"bytes/kernels left out", kernelsLeftOut, false},
	{"bytes/no kernels", noKernels, false},
	{"bytes/several streams", severalStreams, false},
	{"bytes/after another policy", afterAnotherPolicy, false},
	{"bytes/more groups than copy events", manyKernels, false},
	{"held/execute stream", heldExecuteStream, true},
	{"held/copy stream", heldCopyStream, true},
	{"held/other stream", heldOtherStream, true},
	{"held/two goroutines", twoGoroutines, true},
	{"sides/first half", firstHalf, false},
	{"sides/second half", secondHalf, false},
	{"abort/at every point", abortAnywhere, false},
	{"abort/while the execute stream is held", abortHeld, true},
	{"abort/while the copy stream is held", abortHeldCopies, true},
	{"abort/prepared, while the copy stream is held", abortPrepared, true},
	{"abort/failing tiling", failingTiling, false},
	{"abort/closed stream", closedStream, false},
	{"allocations", allocations, false},
}

// Transcript returns what a policy enqueues for one launch of three kernels on
// streams 0, 1 and 0, one line for each call in order.
func Transcript(t *testing.T, p tiling.Policy) string {
	dev, err := cpu.New(cpu.WithInline())
	require.NoError(t, err)
	b := newBed(t, dev, p, rings{2, 2})
	b.recording = true
	o := b.newOp([]int{8, 640, 64}, 0, 1, 0)
	all := o.run(0)
	b.recording = false
	b.sync()
	b.check(all...)
	b.close()
	return b.transcript.String()
}

// Run checks a policy.
func Run(t *testing.T, p tiling.Policy) {
	for _, mode := range []struct {
		name   string
		inline bool
		opts   []cpu.Option
		rings  rings
	}{
		{"async", false, []cpu.Option{cpu.WithWorkers(2)}, rings{3, 2}},
		{"async, short host ring", false, []cpu.Option{cpu.WithWorkers(2)}, rings{2, 3}},
		{"inline", true, []cpu.Option{cpu.WithInline()}, rings{3, 2}},
	} {
		for _, c := range checks {
			if mode.inline && c.asyncOnly {
				continue
			}
			t.Run(mode.name+"/"+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					dev, err := cpu.New(mode.opts...)
					require.NoError(t, err)
					b := newBed(t, dev, p, mode.rings)
					c.run(b)
					b.close()
				})
			})
		}
	}
}
