package workpool_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/internal/workpool"
)

// TestParkerLosesNoWake passes a turn back and forth between two sleepers.
func TestParkerLosesNoWake(t *testing.T) {
	const rounds = 3000
	var turn atomic.Int64
	sleepers := [2]*workpool.Parker{workpool.NewParker(), workpool.NewParker()}
	player := func(me int64) {
		for turn.Load() < rounds {
			mine := func() bool { return turn.Load() >= rounds || turn.Load()%2 == me }
			for !mine() {
				sleepers[me].Prepare()
				if mine() {
					sleepers[me].Cancel()
					break
				}
				sleepers[me].Sleep()
			}
			if turn.Load() < rounds {
				turn.Add(1)
			}
			sleepers[1-me].Wake()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		player(1)
	}()
	player(0)
	<-done
	require.EqualValues(t, rounds, turn.Load())
}

func TestWakeOfAwakeOwner(t *testing.T) {
	p := workpool.NewParker()
	require.False(t, p.Wake())
	p.Prepare()
	require.True(t, p.Wake())
	require.False(t, p.Wake(), "one sleep is woken once")
	p.Sleep()
	p.Prepare()
	require.True(t, p.Wake())
	p.Cancel()
	require.False(t, p.Wake())
}

func TestSpinIsBounded(t *testing.T) {
	require.False(t, first(workpool.Spin{}), "the zero spin does not spin")
	require.False(t, first(workpool.NewSpin(0)))
	require.False(t, first(workpool.NewSpin(-time.Second)))
	count := func(s workpool.Spin) (n int) {
		for sp := s.Start(); sp.Next(); n++ {
		}
		return n
	}
	long := workpool.NewSpin(time.Millisecond)
	start := time.Now()
	n := count(long)
	require.LessOrEqual(t, n, 100_001, "bounded in iterations")
	require.Less(t, time.Since(start), 10*time.Second)
	require.LessOrEqual(t, count(long.AtMost(time.Microsecond)), 101)
	require.Zero(t, count(workpool.Spin{}.AtMost(time.Second)))
}

func first(s workpool.Spin) bool {
	sp := s.Start()
	return sp.Next()
}
