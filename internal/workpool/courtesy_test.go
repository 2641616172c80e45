package workpool

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Lost processors make all busy waits of a device shorter, and waits that end well
// bring the full time back.
func TestCourtesy(t *testing.T) {
	s := Spin{limit: 64 * time.Second, iters: 640, learned: &courtesy{}}
	short := s.AtMost(32 * time.Second)
	s.learned.lost()
	require.Equal(t, 16*time.Second, s.courteous().limit)
	require.Equal(t, 160, s.courteous().iters)
	require.Equal(t, 8*time.Second, short.courteous().limit, "it shares what is learned")
	for range 10 {
		s.learned.lost()
	}
	require.Equal(t, time.Second, s.courteous().limit, "the least")
	for n := range mostCourtesy {
		for range courtesyPay - 1 {
			s.learned.found()
		}
		require.Equal(t, time.Second<<n, s.courteous().limit)
		s.learned.found()
	}
	require.Equal(t, s.limit, s.courteous().limit)
	s.learned.found()
	require.Equal(t, s.limit, s.courteous().limit, "the most")
	for range courtesyPay - 1 {
		s.learned.found()
	}
	s.learned.lost()
	s.learned.found()
	require.EqualValues(t, courtesyStep, s.learned.level.Load(), "a lost processor takes what was earned")
}

// A busy wait that finds a gap between two looks at the clock has lost its
// processor: it ends and notes that.
func TestWaitThatLostItsProcessor(t *testing.T) {
	s := Spin{limit: time.Hour, iters: math.MaxInt, learned: &courtesy{}}
	sp := s.Start()
	for sp.seen.IsZero() {
		require.True(t, sp.Next())
	}
	sp.seen = sp.seen.Add(-time.Hour)
	looks := 0
	for sp.Next() {
		looks++
	}
	require.Less(t, looks, 64)
	require.EqualValues(t, courtesyStep, s.learned.level.Load())
	var none Spin
	require.Zero(t, none.courteous().limit)
	idle := none.Start()
	idle.Found()
}

// Only a wait that has waited earns anything.
func TestFoundAtOnce(t *testing.T) {
	s := Spin{limit: time.Hour, iters: math.MaxInt, learned: &courtesy{}}
	s.learned.lost()
	for range 10 * courtesyPay {
		sp := s.Start()
		sp.Found()
	}
	require.EqualValues(t, courtesyStep, s.learned.level.Load())
	for range courtesyPay {
		sp := s.Start()
		sp.n = 1
		sp.Found()
	}
	require.EqualValues(t, courtesyStep-1, s.learned.level.Load())
}
