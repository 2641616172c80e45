package devicetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/status"
)

var errorChecks = []check{
	{"sticky with its label", checkSticky},
	{"codes", checkCodes},
	{"panics", checkPanics},
	{"one block of many", checkBadBlock},
	{"records fire and waits hold on a failed stream", checkFailedOrder},
	{"other streams go on", checkOtherStream},
	{"first error wins", checkFirstError},
	{"nil context", checkNilContext},
}

func checkSticky(b *bed) {
	s := b.stream()
	x := b.alloc(16)
	cause := errors.New("row 3 does not add up")
	l := fails(cause)
	l.Label = &device.Label{Op: "layer 7", Node: "node 2", Kernel: "softmax/go"}
	s.launch(fill(x, 1))
	s.launch(l)
	s.launch(fill(x, 2))
	s.copy(x, device.WrapHost(repeat(3, 16)))
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, cause)
	require.ErrorIs(b, err, status.ErrRuntimeFail)
	place, ok := errors.AsType[*status.OpError](err)
	require.True(b, ok, "want *status.OpError, got %T", err)
	assert.Equal(b, "layer 7", place.Op)
	assert.Contains(b, place.Node, "node 2")
	assert.Contains(b, place.Node, "softmax/go")
	require.Equal(b, repeat(1, 16), x.Bytes(), "later work was skipped")
	s.sync()
	s.launch(fill(x, 4))
	s.sync()
	require.Equal(b, repeat(4, 16), x.Bytes(), "the stream is usable again")
}

func checkNilContext(b *bed) {
	var none context.Context
	s, e := b.stream(), b.event()
	for what, err := range map[string]error{"stream": s.Synchronize(none), "event": e.Synchronize(none)} {
		require.ErrorIs(b, err, status.ErrInvalidParam, what)
		assert.ErrorContains(b, err, "want argument ctx, got nil", what)
	}
	s.sync()
}

func checkCodes(b *bed) {
	s := b.stream()
	for _, c := range []struct {
		name string
		err  error
		want status.Code
	}{
		{"plain error", errors.New("plain"), status.ErrRuntimeFail},
		{"code", status.ErrInvalidTensorSize, status.ErrInvalidTensorSize},
		{"operation error", &status.OpError{Code: status.ErrInvalidTensorDim}, status.ErrInvalidTensorDim},
		{"wrapped operation error", fmt.Errorf("kernel: %w", status.Errorf(status.ErrOutOfHostMemory, "bad")), status.ErrOutOfHostMemory},
	} {
		s.launch(fails(c.err))
		err := s.Synchronize(b.Context())
		require.ErrorIs(b, err, c.want, c.name)
		require.ErrorContains(b, err, c.err.Error(), c.name)
		require.Equal(b, c.want, status.CodeOf(err), c.name)
	}
}

func checkPanics(b *bed) {
	s := b.stream()
	x := b.alloc(16)
	cause := errors.New("a value that is an error")
	for _, c := range []struct {
		name, text string
		run        func(a *device.Args)
	}{
		{"text", "the moon is full", func(*device.Args) { panic("the moon is full") }},
		{"error", cause.Error(), func(*device.Args) { panic(cause) }},
		{"index", "index out of range", func(a *device.Args) { a.Mem(0)[len(a.Mem(0))+int(a.Key)]++ }},
		{"nil pointer", "nil pointer", func(*device.Args) { var p *int; *p++ }},
	} {
		for _, blocks := range []int{1, 8} {
			s.launch(&device.Launch{Blocks: blocks, Buffers: []device.Buffer{x}, Program: &device.Program{Name: "test/panics", Run: func(a *device.Args, block int) error {
				if block == blocks/2 {
					c.run(a)
				}
				return nil
			}}})
			err := s.Synchronize(b.Context())
			require.ErrorIs(b, err, status.ErrRuntimeFail, c.name)
			require.ErrorContains(b, err, "test/panics", c.name)
			require.ErrorContains(b, err, c.text, c.name)
		}
	}
	s.launch(fill(x, 9))
	s.sync()
	require.Equal(b, repeat(9, 16), x.Bytes())
}

func checkBadBlock(b *bed) {
	s := b.stream()
	for _, bad := range []int{0, 5, 99} {
		cause := fmt.Errorf("block %d is bad", bad)
		s.launch(&device.Launch{Blocks: 100, Program: &device.Program{Name: "test/block", Run: func(_ *device.Args, block int) error {
			if block == bad {
				return cause
			}
			return nil
		}}})
		require.ErrorIs(b, s.Synchronize(b.Context()), cause)
	}
}

func checkFailedOrder(b *bed) {
	s, release := b.stalled()
	e := b.event()
	cause := errors.New("early failure")
	failed, after := b.stream(), b.stream()
	failed.launch(fails(cause))
	s.record(e)
	failed.wait(e)
	done := b.event()
	failed.record(done)
	after.wait(done)
	var ran atomic.Bool
	after.do(func() { ran.Store(true) })
	b.settle()
	require.False(b, ran.Load(), "a failed stream still waits")
	release()
	after.sync()
	require.True(b, ran.Load(), "a failed stream still records")
	require.ErrorIs(b, failed.Synchronize(b.Context()), cause)
}

func checkOtherStream(b *bed) {
	s, o := b.stream(), b.stream()
	x := b.alloc(16)
	cause := errors.New("only here")
	for i := range 50 {
		s.launch(fails(cause))
		o.launch(fill(x, byte(i)))
	}
	o.sync()
	require.Equal(b, repeat(49, 16), x.Bytes())
	require.ErrorIs(b, s.Synchronize(b.Context()), cause)
}

func checkFirstError(b *bed) {
	s, release := b.stalled()
	first, second := errors.New("first"), errors.New("second")
	s.launch(fails(first))
	s.launch(fails(second))
	release()
	err := s.Synchronize(b.Context())
	require.ErrorIs(b, err, first)
	require.NotErrorIs(b, err, second)
	s.sync()
}
