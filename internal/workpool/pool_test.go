package workpool_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/workpool"
)

var sink atomic.Uint64

func spins() map[string]workpool.Spin {
	return map[string]workpool.Spin{"default": workpool.NewSpin(workpool.DefaultSpin), "none": workpool.NewSpin(0)}
}

func TestRunCoversEveryBlockOnce(t *testing.T) {
	for name, spin := range spins() {
		for _, workers := range []int{1, 2, 3, 8} {
			t.Run(fmt.Sprintf("spin=%s/workers=%d", name, workers), func(t *testing.T) {
				p := workpool.New(workers, spin)
				defer p.Close()
				require.Equal(t, workers, p.Size())
				var counts []atomic.Int32
				j := p.NewJob(func(lo, hi int) {
					for i := lo; i < hi; i++ {
						counts[i].Add(1)
					}
				}, nil)
				defer j.Close()
				for _, n := range []int{1, 2, 3, 5, 16, 17, 1000, 2, 1, 4} {
					counts = make([]atomic.Int32, n)
					j.Run(n)
					for i := range counts {
						require.EqualValues(t, 1, counts[i].Load(), "block %d of %d", i, n)
					}
				}
			})
		}
	}
}

// TestRunIsOver checks that no helper touches a run's state after Run returned:
// the state is plain memory that the next run rewrites.
func TestRunIsOver(t *testing.T) {
	p := workpool.New(4, workpool.NewSpin(workpool.DefaultSpin))
	defer p.Close()
	var values []int
	var factor int
	j := p.NewJob(func(lo, hi int) {
		for i := lo; i < hi; i++ {
			values[i] = i * factor
		}
	}, nil)
	defer j.Close()
	for round := range 3000 {
		factor = round
		values = make([]int, 2+round%7)
		j.Run(len(values))
		for i, v := range values {
			require.Equal(t, i*round, v, "round %d", round)
		}
	}
}

// TestShared checks that only runs of several blocks on several workers count.
func TestShared(t *testing.T) {
	p := workpool.New(2, workpool.NewSpin(0))
	defer p.Close()
	j := p.NewJob(func(_, _ int) {}, nil)
	defer j.Close()
	j.Run(1)
	require.Zero(t, j.Shared())
	for i := range uint32(3) {
		j.Run(2)
		require.Equal(t, i+1, j.Shared())
	}
	alone := workpool.New(1, workpool.NewSpin(0))
	defer alone.Close()
	only := alone.NewJob(func(_, _ int) {}, nil)
	defer only.Close()
	only.Run(5)
	require.Zero(t, only.Shared())
}

func TestSeveralSubmitters(t *testing.T) {
	for name, spin := range spins() {
		t.Run(name, func(t *testing.T) {
			p := workpool.New(3, spin)
			defer p.Close()
			var wg sync.WaitGroup
			for g := range 6 {
				wg.Go(func() {
					var sum atomic.Int64
					j := p.NewJob(func(lo, hi int) {
						for i := lo; i < hi; i++ {
							sum.Add(int64(i))
						}
					}, nil)
					defer j.Close()
					for round := range 300 {
						sum.Store(0)
						n := 1 + (round*7+g)%40
						j.Run(n)
						assert.EqualValues(t, n*(n-1)/2, sum.Load())
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestHelpersHelp makes a run that cannot end unless two goroutines work on it.
func TestHelpersHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workpool.New(2, workpool.NewSpin(0))
		defer p.Close()
		meet := make(chan int)
		j := p.NewJob(func(lo, _ int) {
			select {
			case meet <- lo:
			case other := <-meet:
				assert.Equal(t, 1-lo, other)
			}
		}, nil)
		defer j.Close()
		for range 50 {
			j.Run(2)
		}
	})
}

// TestSubmitterFinishesAlone checks that a run does not depend on helpers that
// are busy elsewhere.
func TestSubmitterFinishesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workpool.New(2, workpool.NewSpin(0))
		defer p.Close()
		hold := make(chan struct{})
		blocker := p.NewJob(func(_, _ int) { <-hold }, nil)
		defer blocker.Close()
		go blocker.Run(2)
		synctest.Wait()
		var n atomic.Int64
		j := p.NewJob(func(lo, hi int) { n.Add(int64(hi - lo)) }, nil)
		defer j.Close()
		j.Run(100)
		require.EqualValues(t, 100, n.Load())
		close(hold)
		synctest.Wait()
	})
}

func TestRunAllocatesNothing(t *testing.T) {
	p := workpool.New(2, workpool.NewSpin(workpool.DefaultSpin))
	defer p.Close()
	j := p.NewJob(func(_, _ int) { sink.Add(1) }, nil)
	defer j.Close()
	require.Zero(t, testing.AllocsPerRun(1000, func() { j.Run(4) }))
}

// TestIdlePoolSleeps checks that helpers stop spinning: in a bubble the clock
// only moves once every goroutine is blocked.
func TestIdlePoolSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workpool.New(4, workpool.NewSpin(workpool.DefaultSpin))
		j := p.NewJob(func(_, _ int) {}, nil)
		for range 5 {
			j.Run(8)
			start := time.Now()
			<-time.After(time.Hour)
			require.Equal(t, time.Hour, time.Since(start))
		}
		j.Close()
		p.Close()
	})
}

func TestCloseEndsGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		p := workpool.New(8, workpool.NewSpin(workpool.DefaultSpin))
		j := p.NewJob(func(_, _ int) {}, nil)
		j.Run(100)
		j.Close()
		p.Close()
	}
	for range 1_000_000 { // one that has ended its work may have lost its processor before it is gone
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// TestBodyEndsItsGoroutine checks that a run ends, and the pool goes on, when
// blocks call runtime.Goexit on helpers and on the submitter.
func TestBodyEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workpool.New(3, workpool.NewSpin(0))
		defer p.Close()
		var ran atomic.Int64
		j := p.NewJob(func(lo, _ int) {
			ran.Add(1)
			if lo%5 == 0 {
				runtime.Goexit()
			}
		}, nil)
		defer j.Close()
		for i := range 20 {
			j.SetBusy(i%2 == 1)
			other := p.NewJob(func(_, _ int) {}, nil)
			other.SetBusy(i > 10)
			done := make(chan struct{})
			go func() {
				defer close(done)
				j.Run(40)
			}()
			<-done
			other.Close()
		}
		require.Positive(t, ran.Load())
		j.SetBusy(false)
		full := make(chan struct{})
		var inside atomic.Int32
		meet := p.NewJob(func(_, _ int) {
			if inside.Add(1) == 3 {
				close(full)
			}
			<-full
		}, nil)
		defer meet.Close()
		meet.Run(3)
		require.EqualValues(t, 3, inside.Load(), "all workers are there")
	})
}

// A helper that a run has woken does what there is to do without blocks before it
// sleeps again.
func TestHelperIdles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workpool.New(2, workpool.NewSpin(workpool.DefaultSpin))
		var left [2]atomic.Int64
		left[1].Store(10)
		j := p.NewJob(func(int, int) {}, func(worker int) bool { return left[worker].Add(-1) >= 0 })
		synctest.Wait()
		j.Run(8)
		synctest.Wait()
		require.Negative(t, left[1].Load())
		j.Close()
		p.Close()
	})
}
