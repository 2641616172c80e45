package mempool

// replayer runs the items of a part through online solvers, in node order.
type replayer struct {
	arenas  [snug + 1]arena
	orderer orderer
	ends    []int32 // the part's items by end
	sorted  bool    // ends is that of the part at hand
	blocks  []int32 // by item: the arena's block
}

// snug is type Intervals with the smallest gap that fits instead of the lowest.
const snug = Optimal

// begin makes the replayer ready for another part.
func (r *replayer) begin() { r.sorted = false }

// run replays a part and returns the peak. It gives up, with noPlan, when the
// peak gets to limit. Sizes are rounded up to the largest alignment.
func (r *replayer) run(p *problem, pt *part, t SolverType, limit int64, out []int64) int64 {
	a := &r.arenas[t]
	if a.strategy == nil {
		a.strategy = &intervals{snug: true}
		if t != snug {
			a.strategy = newStrategy(t)
		}
	}
	a.reset()
	r.sortEnds(p, pt)
	r.blocks = grow(r.blocks, p.n())
	ended := 0
	for k := pt.first; k < pt.last; k++ {
		for ; p.end[r.ends[ended]] <= p.start[k]; ended++ {
			a.give(r.blocks[r.ends[ended]])
		}
		out[k], r.blocks[k] = a.alloc(alignUp(p.size[k], p.alignMax))
		if a.peak >= limit {
			return noPlan
		}
	}
	return a.peak
}

func (r *replayer) sortEnds(p *problem, pt *part) {
	if r.sorted {
		return
	}
	r.sorted = true
	r.ends, r.orderer.key = grow(r.ends, pt.items()), grow(r.orderer.key, p.n())
	for i := range r.ends {
		k := pt.first + i
		r.ends[i] = int32(k)
		r.orderer.key[k] = uint64(p.end[k])
	}
	r.orderer.sort(r.ends)
}

func placeSnug(p *Planner, pt *part, limit int64) int64 {
	return p.replay.run(&p.problem, pt, snug, limit, p.try)
}

func placeIntervals(p *Planner, pt *part, limit int64) int64 {
	return p.replay.run(&p.problem, pt, Intervals, limit, p.try)
}

func placeBestFit(p *Planner, pt *part, limit int64) int64 {
	return p.replay.run(&p.problem, pt, BestFit, limit, p.try)
}

func placeFirstFit(p *Planner, pt *part, limit int64) int64 {
	return p.replay.run(&p.problem, pt, FirstFit, limit, p.try)
}
