package cpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPace(t *testing.T) {
	var p pace
	for range paceStreak - 1 {
		p.found(1, 0)
	}
	require.Less(t, p.streak, paceStreak)
	p.found(0, 0)
	require.GreaterOrEqual(t, p.streak, paceStreak, "the runner follows at the heels")
	p.found(paceSoon, 0)
	require.GreaterOrEqual(t, p.streak, paceStreak)
	p.found(paceSoon+1, 0)
	require.Zero(t, p.streak, "the enqueuer is slower")
	for range 2 * paceStreak {
		p.found(0, 7)
	}
	require.GreaterOrEqual(t, p.streak, paceStreak)
	p.found(0, 8)
	require.Zero(t, p.streak, "the host waits for answers")
}
