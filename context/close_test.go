package context_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device/cpu"
	"goatb/status"
	"goatb/tensor"
)

func TestCloseInAnyOrder(t *testing.T) {
	for order := range 6 {
		d, err := cpu.New()
		require.NoError(t, err)
		c, err := atbctx.New(d, atbctx.WithEnv(env()), atbctx.WithPolicy("multi-stream"))
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		require.NoError(t, c.SetStreams(s))
		_, err = c.Workspace(1 << 16)
		require.NoError(t, err)
		closers := []func() error{c.Close, d.Close, s.Close}
		perm := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}[order]
		for _, i := range append(perm, perm...) {
			require.NoError(t, closers[i](), "order %v", perm)
		}
	}
}

func TestClosedContext(t *testing.T) {
	c := open(t)
	require.NoError(t, c.Close())
	for _, x := range []*atbctx.Context{c, nil} {
		_, workspace := x.Workspace(8)
		_, alloc := x.Alloc(8)
		_, tensorErr := atbctx.NewTensor(x, tensor.Of(tensor.Float32, 2))
		_, slice := atbctx.FromSlice(x, []float32{1}, 1)
		for what, err := range map[string]error{
			"workspace": workspace, "alloc": alloc, "tensor": tensorErr, "slice": slice,
			"synchronize": x.Synchronize(t.Context()), "set policy": x.SetPolicy("overall"), "enter": x.Enter(atbctx.HostSide),
		} {
			require.ErrorIs(t, err, status.ErrInvalidContextAddr, what)
			assert.ErrorIs(t, err, status.ErrInvalidParam, what)
		}
		s, err := openDevice(t).NewStream()
		require.NoError(t, err)
		assert.ErrorIs(t, x.SetStreams(s), status.ErrInvalidContextAddr)
		assert.Zero(t, x.Stats().Setups)
	}
	var none *atbctx.Context
	_, err := none.Stream(0)
	assert.ErrorIs(t, err, status.ErrInvalidContextAddr)
	assert.Zero(t, none.Streams())
	assert.Empty(t, none.Policy())
	assert.NoError(t, none.Close())
}

func TestCloseWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := cpu.New()
		require.NoError(t, err)
		c, err := atbctx.New(d, atbctx.WithEnv(env()))
		require.NoError(t, err)
		require.NoError(t, c.Enter(atbctx.HostSide))
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("closed while a call is in progress")
		default:
		}
		assert.ErrorIs(t, c.Enter(atbctx.LaunchSide), status.ErrInvalidContextAddr)
		c.Lend(atbctx.HostSide)
		require.NoError(t, <-closed)
		assert.ErrorIs(t, c.Reclaim(atbctx.HostSide), status.ErrInvalidContextAddr)
		c.Leave(atbctx.HostSide)
		require.NoError(t, d.Close())
	})
}

func TestStatsWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := cpu.New()
		require.NoError(t, err)
		c, err := atbctx.New(d, atbctx.WithEnv(env()))
		require.NoError(t, err)
		release := hold(t, c)
		closed := make(chan error)
		go func() { closed <- c.Close() }()
		synctest.Wait()
		assert.Len(t, c.Stats().Streams, 1)
		release()
		require.NoError(t, <-closed)
		require.NoError(t, d.Close())
	})
}
