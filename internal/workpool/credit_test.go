package workpool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAccount(t *testing.T) {
	const us, ms = time.Microsecond, time.Millisecond
	now := time.Unix(1000, 0)
	var a account
	require.True(t, a.open(now), "the zero account is open")

	a.book(now, 20*us, 0, 1, 2)
	require.Equal(t, 20*us, a.balance, "the helper computed as many blocks")
	a.book(now, 30*us, 10*us, 3, 4)
	require.Equal(t, 30*us, a.balance, "the helper computed a third of the submitter's blocks")
	a.book(now, 10*us, 80*us, 1, 2)
	require.Equal(t, 40*us, a.balance, "blocks of unequal size are not late")
	a.book(now, 20*us, 0, 0, 2)
	require.Equal(t, 40*us, a.balance, "helpers computed everything")

	a.book(now, 10*us, 3*ms, 1, 2)
	require.False(t, a.open(now), "overdrawn")
	require.False(t, a.open(now.Add(minPause-1)))
	require.True(t, a.open(now.Add(minPause)))

	for range 100000 {
		a.book(now, 20*us, 0, 1, 2)
	}
	require.Equal(t, maxBalance, a.balance)
	now = now.Add(minPause)
	a.book(now, 10*us, 3*ms, 1, 2)
	require.True(t, a.open(now), "savings bear a late helper now and then")
}

// After a pause a job bears one helper on its waker's processor, and no second one
// that nothing has paid for.
func TestAccountBearsOneBadWakeUp(t *testing.T) {
	now := time.Unix(1000, 0)
	var a account
	a.close(now)
	now = now.Add(minPause)
	a.charge(now, crowdedCost)
	require.True(t, a.open(now))
	a.book(now, crowdedCost/2, 0, 1, 2)
	a.charge(now, crowdedCost/2)
	require.True(t, a.open(now), "paid by a run that went well")
	a.charge(now, crowdedCost)
	require.False(t, a.open(now))
}

func TestAccountPauses(t *testing.T) {
	now := time.Unix(1000, 0)
	var a account
	want := minPause
	for range 10 {
		a.close(now)
		require.False(t, a.open(now.Add(want-1)))
		require.True(t, a.open(now.Add(want)))
		now = now.Add(want + time.Millisecond)
		want = min(2*want, maxPause)
	}
	now = now.Add(soon * maxPause)
	a.close(now)
	require.True(t, a.open(now.Add(minPause)), "trouble after a good time starts small again")
}

// TestCrowdedOwner pretends wake-ups from different places.
func TestCrowdedOwner(t *testing.T) {
	p := NewParker()
	require.False(t, p.crowded(), "nobody has woken it")
	if here() == nowhere {
		t.Skip("the processor is unknown here")
	}
	// The test may move to another processor between two lines; it does not do
	// so a hundred times in a row.
	often := func(waker func() location) bool {
		for range 100 {
			p.waker = waker()
			if p.crowded() {
				return true
			}
		}
		return false
	}
	otherThread := func() location { return location{here().processor, -2} }
	require.True(t, often(otherThread))
	require.False(t, p.crowded(), "a wake-up is judged once")
	require.False(t, often(func() location { return location{1 << 20, -2} }), "another processor")

	sp := NewSpin(time.Hour).StartIdle(p)
	n := 0
	for p.waker = otherThread(); sp.Next() && n < 1e6; n++ {
		p.waker = otherThread()
	}
	require.Less(t, n, 1000000, "a crowded owner gives up early")
	require.Equal(t, n > 0, sp.Crowded())
}
