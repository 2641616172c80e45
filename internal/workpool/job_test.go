package workpool

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dealt is a job of a number of workers whose blocks nobody has claimed yet.
func dealt(workers int, n int64) *Job {
	j := &Job{parts: newParts(workers), gen: 1<<40 + 7}
	j.deal(n)
	return j
}

// A worker claims what lies behind what it has claimed, then the ends of others'
// parts; all blocks are claimed once.
func TestClaimsAreNeighbours(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		for _, n := range []int64{1, 2, 5, 32, 33, 1000, maxUnits, maxUnits + 1, 10*maxUnits + 3, MaxBlocks} {
			j := dealt(workers, n)
			me := workers - 1
			own, end := unclaimed(j.parts[me].word.Load())
			next, sum := own, int64(0)
			for from, share := j.claim(me); share > 0; from, share = j.claim(me) {
				if next < end {
					require.Equal(t, next, from, "%d workers, %d blocks", workers, n)
					next += share
				} else {
					require.True(t, from < own || from >= end, "%d workers, %d blocks", workers, n)
				}
				lo, blocks := j.blocks(from, share)
				require.Positive(t, blocks)
				require.LessOrEqual(t, lo+blocks, n)
				sum += blocks
			}
			require.Equal(t, n, sum, "%d workers", workers)
			require.False(t, j.open())
			require.Equal(t, uint64(7), j.parts[0].word.Load()>>32, "the generation stays")
		}
	}
}

// Parts differ by one unit at most, the first ones being the larger.
func TestDeal(t *testing.T) {
	for _, workers := range []int{2, 3, 7} {
		for n := int64(1); n < 40; n++ {
			j, last := dealt(workers, n), int64(0)
			for i := range j.parts {
				lo, hi := unclaimed(j.parts[i].word.Load())
				require.Equal(t, last, lo)
				require.Contains(t, []int64{n / int64(workers), n/int64(workers) + 1}, hi-lo)
				last = hi
			}
			require.Equal(t, n, last)
			lo, hi := unclaimed(j.parts[0].word.Load())
			require.Positive(t, hi-lo, "the submitter has work")
		}
	}
}

// Workers that claim at once never get a block twice.
func TestClaimsAtOnce(t *testing.T) {
	for range 50 {
		const workers, n = 4, 3000
		j := dealt(workers, n)
		var times [n]int32
		var all sync.WaitGroup
		var mu sync.Mutex
		for w := range workers {
			all.Go(func() {
				for from, share := j.claim(w); share > 0; from, share = j.claim(w) {
					mu.Lock()
					for b := from; b < from+share; b++ {
						times[b]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for b, count := range times {
			require.EqualValues(t, 1, count, "block %d", b)
		}
	}
}

// A run begins with the blocks that FirstBlock tells.
func TestFirstBlock(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 8} {
		p := &Pool{size: workers}
		for _, n := range []int64{1, 2, 5, 32, 33, maxUnits + 1, 10*maxUnits + 3, MaxBlocks} {
			j := dealt(workers, n)
			for w := range workers {
				if lo, hi := unclaimed(j.parts[w].word.Load()); lo < hi {
					require.EqualValues(t, lo*j.unit, p.FirstBlock(w, int(n)), "worker %d of %d, %d blocks", w, workers, n)
				}
				require.Less(t, int64(p.FirstBlock(w, int(n))), n)
			}
		}
	}
}

// A submitter that waits for helpers does what there is to do meanwhile.
func TestSubmitterIdles(t *testing.T) {
	p := New(2, NewSpin(time.Second))
	defer p.Close()
	var j *Job
	times := 0
	j = p.NewJob(func(int, int) {}, func(worker int) bool {
		if worker != 0 {
			return false
		}
		if times++; times == 3 {
			j.finish(1)
		}
		return times < 3
	})
	defer j.Close()
	j.left.Store(1)
	j.await()
	require.Equal(t, 3, times)
}
