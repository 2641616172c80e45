package runner

import (
	"goatb/device"
	"goatb/kernelgraph"
)

// pairs are the records and waits of a plan that belong together inside it: every
// use of their event in the plan is a record or the wait behind it, in turns, so
// that nothing outside takes part.
type pairs struct {
	// of has the pair of a step, numbered from 1; 0 is none.
	of []int
	// events are the events of the pairs, each once.
	events []device.Event
}

// findPairs looks at the events of the plan. An event that is nil is an error.
func (r *Runner) findPairs() (pairs, error) {
	p := pairs{of: make([]int, len(r.plan.steps))}
	uses := map[device.Event][]int{}
	var order []device.Event
	for i := range r.plan.steps {
		n := r.plan.steps[i].node
		if n.Kind != kernelgraph.RecordNode && n.Kind != kernelgraph.WaitNode {
			continue
		}
		e, err := r.event(n)
		if err != nil {
			return p, err
		}
		if uses[e] == nil {
			order = append(order, e)
		}
		uses[e] = append(uses[e], i)
	}
	count := 0
	for _, e := range order {
		if !r.inTurns(uses[e]) {
			continue
		}
		p.events = append(p.events, e)
		for i, step := range uses[e] {
			p.of[step] = count + i/2 + 1
		}
		count += len(uses[e]) / 2
	}
	return p, nil
}

// inTurns reports whether steps are record, wait, record, wait and so on.
func (r *Runner) inTurns(steps []int) bool {
	for i, s := range steps {
		want := kernelgraph.RecordNode
		if i%2 == 1 {
			want = kernelgraph.WaitNode
		}
		if r.plan.steps[s].node.Kind != want {
			return false
		}
	}
	return len(steps)%2 == 0
}

// settlePairs leaves the events of the pairs as the host would: whoever waits for
// their records goes on when the launch is done, and none is left to be taken.
func (r *Runner) settlePairs() error {
	main := r.job.Streams[r.plan.main]
	for _, e := range r.captured.pairs.events {
		if err := main.Record(e); err != nil {
			return err
		}
		if err := main.Reset(e); err != nil {
			return err
		}
	}
	return nil
}
