package checked

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"goatb/status"
)

var errGrace = errors.New("grace time is over")

// await runs a wait of the host and gives up when it cannot end. stuck returns
// what holds the wait and whether nothing that is enqueued later can help. done
// says that the wait itself has ended.
func (d *Device) await(ctx context.Context, wait func(context.Context) error, stuck func() (f *Finding, forGood bool)) (done bool, err error) {
	_, deadline := ctx.Deadline()
	for {
		if f, forGood := stuck(); f != nil && forGood {
			return false, f.failure(status.ErrRuntimeFail, nil)
		}
		part, cancel := ctx, context.CancelFunc(func() {})
		if !deadline {
			part, cancel = context.WithTimeoutCause(ctx, d.cfg.grace, errGrace)
		}
		err := wait(part)
		gaveUp := err != nil && part.Err() != nil && (errors.Is(err, context.Cause(part)) || errors.Is(err, part.Err()))
		cancel()
		if !gaveUp {
			return true, err
		}
		f, _ := stuck()
		switch {
		case ctx.Err() != nil && f != nil:
			return false, errors.Join(err, f.failure(status.ErrRuntimeFail, nil))
		case ctx.Err() != nil:
			return false, err
		case f != nil:
			return false, f.failure(status.ErrRuntimeFail, nil)
		}
	}
}

// stuck says why the tasks of m up to an index cannot all be done with what is
// enqueued; mu is held.
func (d *Device) stuck(m *model, index uint64) (f *Finding, forGood bool) {
	if m.settled >= index || d.closed.Load() {
		return nil, false
	}
	var chain []string
	var seen []*model
	for {
		if slices.Contains(seen, m) {
			return &Finding{Kind: Deadlock, Text: strings.Join(chain, "; ") + "; so they wait for each other"}, true
		}
		seen = append(seen, m)
		t := m.pending[0]
		r := t.waits
		text := fmt.Sprintf("%s waits for the event made at %s", t.origin.String(), r.event.made.String())
		if r.by == nil {
			return &Finding{Kind: Deadlock, Text: strings.Join(append(chain, text+", which nobody records after that"), "; ")}, false
		}
		chain = append(chain, fmt.Sprintf("%s, whose %s comes behind", text, r.by.origin.String()))
		m = d.models[r.by.origin.stream]
	}
}
