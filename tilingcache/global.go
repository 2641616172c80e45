package tilingcache

import (
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"goatb/status"
)

// Global is a set of caches, one for each operation type. It is safe for
// concurrent use and may be shared by contexts.
type Global struct {
	slots  int
	mu     sync.Mutex
	byType map[string]*typeCache
	stats  GlobalStats
}

// typeCache is the cache of one operation type. The store maps the hash of a
// query to the tilings of that query; of two queries with one hash the later
// one stays.
type typeCache struct {
	lru     *simplelru.LRU[uint64, *stored]
	kernels int
	// hash and last are what was looked up last, the latest in lru too.
	hash uint64
	last *stored
}

// get looks a hash up; nil says that nothing is stored.
func (c *typeCache) get(hash uint64) *stored {
	if c.last == nil || c.hash != hash {
		c.last, _ = c.lru.Get(hash)
		c.hash = hash
	}
	return c.last
}

// stored holds the full key of a query and its tilings for several host values,
// replaced round robin in place: a step whose lengths grew allocates nothing.
type stored struct {
	query   Query
	entries []Entry
	next    int
}

// GlobalStats counts what a Global cache has seen.
type GlobalStats struct {
	// Types and Entries, the tilings, are what is cached now.
	Types, Entries int
	// Hits, Misses, Stored and Evicted count since the cache was made;
	// Collisions counts lookups whose hash matched another key.
	Hits, Misses, Stored, Evicted, Collisions int64
}

// NewGlobal makes a cache that keeps, for each operation type, the tilings of
// `slots` problems for each kernel, each for up to `slots` sets of host values.
// Errors: ErrInvalidParam for a count below 1.
func NewGlobal(slots int) (*Global, error) {
	if slots < 1 {
		return nil, status.Errorf(status.ErrInvalidParam, "global tiling cache: want at least 1 slot, got %d", slots)
	}
	return &Global{slots: slots, byType: map[string]*typeCache{}}, nil
}

// made reports whether NewGlobal made the cache: a nil or zero one holds nothing and
// keeps nothing.
func (g *Global) made() bool { return g != nil && g.byType != nil }

// Grow makes room for operations of a type with n kernels: the store holds
// slots × the largest n seen.
func (g *Global) Grow(opType string, n int) {
	if !g.made() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.byType[opType]
	if !ok {
		lru, err := simplelru.NewLRU[uint64, *stored](g.slots*max(n, 1), nil)
		if err != nil {
			return // only a size below 1 is refused
		}
		g.byType[opType] = &typeCache{lru: lru, kernels: max(n, 1)}
		return
	}
	if n > c.kernels {
		c.kernels = n
		c.lru.Resize(g.slots * n)
	}
}

// Find copies the tiling that dst asks for into dst, which Local.Replace
// returned, and reports whether there was one.
func (g *Global) Find(opType string, dst *Entry) bool {
	if !g.made() || dst == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if e := g.find(opType, dst); e != nil {
		g.stats.Hits++
		copy(dst.bytes, e.bytes)
		dst.Grid = e.Grid
		return true
	}
	g.stats.Misses++
	return false
}

func (g *Global) find(opType string, dst *Entry) *Entry {
	c, ok := g.byType[opType]
	if !ok {
		return nil
	}
	s := c.get(dst.query.hash)
	if s == nil {
		return nil
	}
	if !s.query.same(&dst.query) {
		g.stats.Collisions++
		return nil
	}
	for i := range s.entries {
		if slices.Equal(s.entries[i].flat, dst.flat) {
			return &s.entries[i]
		}
	}
	return nil
}

// Store adds a copy of a filled entry.
func (g *Global) Store(opType string, e *Entry) {
	if !g.made() || e == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.byType[opType]
	if !ok {
		return
	}
	g.stats.Stored++
	s := c.get(e.query.hash)
	if s == nil {
		s = &stored{}
		if c.lru.Add(e.query.hash, s) {
			g.stats.Evicted++
		}
		c.last = s
	}
	if !s.query.same(&e.query) {
		*s = stored{query: e.query}
	}
	s.slot(g.slots, e.flat).take(e)
}

// slot returns the entry that takes a tiling: the one with equal host values, a
// fresh one while there are fewer than `slots`, or the next in turn.
func (s *stored) slot(slots int, flat []int64) *Entry {
	for i := range s.entries {
		if slices.Equal(s.entries[i].flat, flat) {
			return &s.entries[i]
		}
	}
	if len(s.entries) < slots {
		s.entries = append(s.entries, Entry{})
		return &s.entries[len(s.entries)-1]
	}
	e := &s.entries[s.next]
	s.next = (s.next + 1) % len(s.entries)
	return e
}

// take copies a tiling; e's memory is reused.
func (e *Entry) take(o *Entry) {
	e.query, e.Grid, e.valid = o.query, o.Grid, true
	e.flat = append(e.flat[:0], o.flat...)
	e.bytes = append(e.bytes[:0], o.bytes...)
}

// Stats returns a snapshot of the counters.
func (g *Global) Stats() GlobalStats {
	if !g.made() {
		return GlobalStats{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Types = len(g.byType)
	for _, c := range g.byType {
		for _, q := range c.lru.Values() {
			s.Entries += len(q.entries)
		}
	}
	return s
}

// Purge empties the cache; the counters stay.
func (g *Global) Purge() {
	if !g.made() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.byType {
		c.lru.Purge()
		c.last = nil
	}
}
