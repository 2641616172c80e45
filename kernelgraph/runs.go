package kernelgraph

import (
	"fmt"
	"slices"
	"sort"

	"goatb/mempool"
)

// run is bytes lo to hi-1 that hold one content.
type run struct {
	lo, hi  int64
	content content
}

// runs is what bytes hold: runs in ascending order that do not overlap. Bytes
// between them hold nothing.
type runs struct{ list []run }

// first returns the index of the first run that ends behind lo.
func (r *runs) first(lo int64) int {
	return sort.Search(len(r.list), func(i int) bool { return r.list[i].hi > lo })
}

// between returns the runs within bytes lo to hi-1, with those that hold
// nothing.
func (r *runs) between(lo, hi int64) []run {
	var out []run
	for i := r.first(lo); lo < hi; i++ {
		if i == len(r.list) || r.list[i].lo >= hi {
			return append(out, run{lo: lo, hi: hi})
		}
		s := r.list[i]
		if s.lo > lo {
			out = append(out, run{lo: lo, hi: s.lo})
			lo = s.lo
		}
		s.lo, s.hi = lo, min(s.hi, hi)
		out = append(out, s)
		lo = s.hi
	}
	return out
}

// set puts a run in the place of what was there.
func (r *runs) set(s run) {
	if s.lo >= s.hi {
		return
	}
	from := r.first(s.lo)
	to := from
	put := []run{s}
	if from < len(r.list) && r.list[from].lo < s.lo {
		left := r.list[from]
		left.hi = s.lo
		put = []run{left, s}
	}
	for to < len(r.list) && r.list[to].lo < s.hi {
		if old := r.list[to]; old.hi > s.hi {
			old.lo = s.hi
			put = append(put, old)
		}
		to++
	}
	r.list = slices.Replace(r.list, from, to, put...)
}

// accesses remembers who used which bytes last: for every run the one that wrote
// it and those that have read it since. A graph that uses one tensor on streams
// that are not in order is the caller's business; here uses of different
// tensors have to be in order.
type accesses struct {
	order *mempool.Order
	runs  runs
	users [][]user // by the run's content: the writer, then the readers
}

// user is a node that uses the memory of a temporary.
type user struct {
	node int
	base Ref
}

// read checks that u comes after the writers of bytes lo to hi-1.
func (a *accesses) read(u user, lo, hi int64) error {
	for _, s := range a.runs.between(lo, hi) {
		if s.content.write == 0 {
			continue
		}
		users := a.users[s.content.write-1]
		if err := a.after(users[0], u, s); err != nil {
			return err
		}
		a.put(s.lo, s.hi, append(slices.Clone(users), u))
	}
	return nil
}

// write checks that u comes after all uses of bytes lo to hi-1.
func (a *accesses) write(u user, lo, hi int64) error {
	for _, s := range a.runs.between(lo, hi) {
		if s.content.write == 0 {
			continue
		}
		for _, old := range a.users[s.content.write-1] {
			if err := a.after(old, u, s); err != nil {
				return err
			}
		}
	}
	a.put(lo, hi, []user{u})
	return nil
}

func (a *accesses) after(old, u user, s run) error {
	if old.base == u.base || old.node == u.node || a.order.Before(old.node, u.node) {
		return nil
	}
	return fmt.Errorf("node %d uses bytes %d to %d for another tensor, maybe at the same time", old.node, s.lo, s.hi-1)
}

func (a *accesses) put(lo, hi int64, users []user) {
	a.users = append(a.users, users)
	a.runs.set(run{lo, hi, content{write: len(a.users)}})
}
