package pressure

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
)

// TestCloseInAnyOrder closes operation, context, event and device in every
// order, each twice, with work under way, and counts goroutines.
func TestCloseInAnyOrder(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, policy := range policies {
		for _, order := range orders(4) {
			t.Run(fmt.Sprint(policy, order), func(t *testing.T) { closeIn(t, policy, order) })
		}
	}
	for i := 0; runtime.NumGoroutine() > before; i++ {
		require.Less(t, i, 1_000_000, "%d goroutines, %d before", runtime.NumGoroutine(), before)
		runtime.Gosched()
	}
}

// orders lists the permutations of 0 to n-1.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, p := range orders(n - 1) {
		for at := range n {
			q := append(append(append([]int{}, p[:at]...), n-1), p[at:]...)
			all = append(all, q)
		}
	}
	return all
}

func closeIn(t *testing.T, policy string, order []int) {
	d, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	c, err := atb.NewContext(d, atb.WithEnv(noEnv), atb.WithPolicy(policy), atb.WithStreams(2))
	require.NoError(t, err)
	op, err := atb.New(plus{})
	require.NoError(t, err)
	event, err := d.NewEvent()
	require.NoError(t, err)
	x, err := atb.FromSlice(c, make([]float32, 1<<14), 1<<14)
	require.NoError(t, err)
	y, err := atb.NewTensor(c, x.Desc)
	require.NoError(t, err)
	pack := atb.VariantPack{In: []atb.Tensor{x, atb.Host([]int32{1, 2})}, Out: []atb.Tensor{y}}
	_, err = op.Setup(pack, c)
	require.NoError(t, err)
	s, err := c.Stream(0)
	require.NoError(t, err)
	for range 20 {
		require.NoError(t, op.Execute(pack, atb.Buffer{}, c))
		require.NoError(t, s.Record(event))
	}
	closers := []func() error{op.Close, c.Close, event.Close, d.Close}
	for _, i := range order {
		assert.NoError(t, closers[i](), "%d", i)
		assert.NoError(t, closers[i](), "%d again", i)
	}
	for _, i := range order {
		assert.NoError(t, closers[i](), "%d after all", i)
	}
	_, err = op.Setup(pack, c)
	assert.Error(t, err)
	assert.Error(t, op.Execute(pack, atb.Buffer{}, c))
}
