package optimal

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// portfolio runs searches with different orders side by side, suspending one to
// go on with the next: which order finds a plan soon cannot be told in advance,
// and one that does not may take forever.
type portfolio struct {
	lanes   [len(orders)]lane
	stop    atomic.Bool // somebody is done, or time is over
	shared  *problem
	threads int
	left    int64 // nodes
	used    int64
	quota   int64 // nodes of an attempt
	until   time.Time
	late    bool
	plan    []slot // of the winner
	winner  string
}

const (
	// firstSlice is the number of nodes per buffer that a lane gets in its first
	// turn; each turn is twice as long as the one before.
	firstSlice = 2
	// firstQuota is the number of nodes per buffer and lane of the first attempt
	// at each arena; each round of attempts has quotaGrowth as many.
	firstQuota  = 14
	quotaGrowth = 2
	// clockNodes is the number of nodes between two looks at the clock.
	clockNodes = 1024
)

func (f *portfolio) begin(p *problem, o Options) {
	f.shared, f.threads = p, min(max(o.Threads, 1), len(f.lanes))
	f.left, f.used, f.until, f.late = o.Nodes, 0, o.Deadline, false
	if o.Nodes <= 0 {
		f.left = math.MaxInt64
	}
	f.quota = int64(firstQuota * p.n * len(f.lanes))
	f.winner, f.plan = "", nil
}

func (f *portfolio) spent() bool { return f.left <= 0 || f.late }

// attempt looks for a plan of at most limit units.
func (f *portfolio) attempt(limit int64) state {
	f.stop.Store(false)
	for i := range f.lanes {
		f.lanes[i].start(f.shared, orders[i], limit)
	}
	each := max(1, min(f.quota, f.left)/int64(len(f.lanes)))
	if f.threads == 1 {
		f.work(0, each)
	} else {
		var workers sync.WaitGroup
		for w := range f.threads {
			workers.Go(func() { f.work(w, each) })
		}
		workers.Wait()
	}
	f.late = !f.until.IsZero() && !time.Now().Before(f.until)
	return f.verdict()
}

// work runs the lanes of one worker in turn, each up to a number of nodes.
func (f *portfolio) work(worker int, each int64) {
	for slice := int64(firstSlice * f.shared.n); ; slice *= 2 {
		over := true
		for i := worker; i < len(f.lanes); i += f.threads {
			l := &f.lanes[i]
			f.turn(l, min(slice, each-l.nodes))
			if f.stop.Load() {
				return
			}
			over = over && l.nodes >= each
		}
		if over {
			return
		}
	}
}

// turn runs one lane for a number of nodes, with looks at the clock.
func (f *portfolio) turn(l *lane, nodes int64) {
	for nodes > 0 && !f.stop.Load() {
		step := min(nodes, clockNodes)
		nodes -= step
		if l.run(step) != searching || !f.until.IsZero() && !time.Now().Before(f.until) {
			f.stop.Store(true)
		}
	}
}

// verdict adds up what the lanes did.
func (f *portfolio) verdict() state {
	s := searching
	for i := range f.lanes {
		l := &f.lanes[i]
		f.used += l.nodes
		f.left -= l.nodes
		if s == searching && l.state != searching {
			if s = l.state; s == found {
				f.winner, f.plan = l.order.name, l.slot
			}
		}
	}
	return s
}
