package workpool

import (
	"runtime"
	"time"
)

// DefaultSpin is how long an idle goroutine of a device looks for work before
// it parks. It covers the gaps inside one layer of a model.
const DefaultSpin = 100 * time.Microsecond

// iterationTime is the least time that one iteration is taken for when a
// duration is turned into a bound on iterations.
const iterationTime = 10 * time.Nanosecond

// stolen is the time between two looks at the clock, which are a few microseconds
// apart, from which on a busy wait has lost its processor in between.
const stolen = 500 * time.Microsecond

// Spin is the bound of a busy wait. The zero Spin does not spin. Those that are
// made from one share what they learn: where busy waits lose their processors they
// become shorter.
type Spin struct {
	limit   time.Duration
	iters   int
	learned *courtesy
}

// NewSpin bounds a busy wait by d. It does not spin at all when only one
// goroutine can run at a time: nothing could change meanwhile.
func NewSpin(d time.Duration) Spin {
	if d <= 0 || runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		return Spin{}
	}
	return Spin{limit: d, iters: int(d/iterationTime) + 1, learned: &courtesy{}}
}

// AtMost returns the shorter of s and a busy wait of d.
func (s Spin) AtMost(d time.Duration) Spin {
	if s.limit <= d {
		return s
	}
	return Spin{limit: d, iters: int(d/iterationTime) + 1, learned: s.learned}
}

// courteous is s as it is used now.
func (s Spin) courteous() Spin {
	shift := s.learned.shift()
	s.limit >>= shift
	s.iters >>= shift
	return s
}

// Spinner is one busy wait. It lives on the stack of the goroutine that waits.
type Spinner struct {
	spin  Spin
	n     int
	yield int
	owner *Parker
	start time.Time
	seen  time.Time // the last look at the clock

	crowded bool
}

// Start begins a busy wait that keeps its processor until the bound.
func (s Spin) Start() Spinner { return Spinner{spin: s.courteous(), yield: -1} }

// StartIdle begins a busy wait for something to do, before its owner parks. It
// offers its processor to other goroutines now and then, ever more rarely, for
// a goroutine that was just woken must not wait for the end of an idle spin; and
// it ends when the owner shares a processor with its waker.
func (s Spin) StartIdle(owner *Parker) Spinner {
	return Spinner{spin: s.courteous(), yield: 16, owner: owner}
}

// Next passes a moment and reports whether to look again; false means that
// the bound is reached.
func (s *Spinner) Next() bool {
	if s.n >= s.spin.iters {
		return false
	}
	s.n++
	pause()
	if s.n&31 == 0 && !s.inTime() {
		return false
	}
	if s.n == s.yield {
		s.yield *= 4
		runtime.Gosched()
		if s.owner.crowded() {
			s.n, s.crowded = s.spin.iters, true
			return false
		}
	}
	return true
}

// Crowded reports whether the wait ended because its owner shares a processor
// with its waker.
func (s *Spinner) Crowded() bool { return s.crowded }

// Found notes that the wait has ended with what it waited for.
func (s *Spinner) Found() {
	if s.n > 0 {
		s.spin.learned.found()
	}
}

// Count returns how many moments have passed.
func (s *Spinner) Count() int { return s.n }

// Pause passes n moments of 10 to 60 ns each.
func Pause(n int) {
	for range n {
		pause()
	}
}

// Passed returns how long ago the wait took note of the time, which it does
// after a microsecond or so; 0 before.
func (s *Spinner) Passed() time.Duration {
	if s.start.IsZero() {
		return 0
	}
	return time.Since(s.start)
}

func (s *Spinner) inTime() bool {
	now := time.Now()
	if s.start.IsZero() {
		s.start, s.seen = now, now
		return true
	}
	if now.Sub(s.seen) > stolen {
		s.spin.learned.lost()
		return false
	}
	s.seen = now
	return now.Sub(s.start) < s.spin.limit
}
