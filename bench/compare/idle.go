package compare

import (
	"cmp"
	"slices"
	"time"

	"goatb/device/trace"
)

// cause is what an idle device waits for.
type cause uint8

const (
	other cause = iota
	tilingCause
	copyCause
	launchCause
	eventCause
	ringCause
	// waiting is a host that waits for the device.
	waiting
)

// causeNames are the causes as Idle's JSON has them, and that of a waiting host.
var causeNames = [...]string{other: "other", tilingCause: "tiling", copyCause: "copy", launchCause: "launch", eventCause: "event", ringCause: "ring", waiting: "wait"}

// causes maps the categories of host spans; those that are not there are other.
var causes = map[string]cause{
	"tiling": tilingCause, "lookup": tilingCause,
	"copy":   copyCause,
	"launch": launchCause, "replay": launchCause, "execute": launchCause,
	"event": eventCause,
	"ring":  ringCause,
	"wait":  waiting, "queue": waiting,
}

// HostCauses tells by the category of a host span what a device waits for that is
// idle meanwhile: a name that Idle has in JSON, or "wait" where the host itself
// waits for the device. Categories that are not there count as "other".
func HostCauses() map[string]string {
	names := make(map[string]string, len(causes))
	for category, c := range causes {
		names[category] = causeNames[c]
	}
	return names
}

// interval is a piece of time, in nanoseconds since the start of a step.
type interval struct {
	start, end int64
	cause      cause
}

// timeline is what happened in one step.
type timeline struct {
	start, end time.Time
	// host are the innermost spans of the host, apart from each other.
	host []interval
	// kernels are the runs of kernels in order of their start, with the moments
	// at which they were enqueued.
	kernels []kernelRun
	// copies, tilings and events are times in which the device did such work.
	copies, tilings, events []interval
}

// kernelRun is one run of a kernel.
type kernelRun struct{ start, end, enqueued int64 }

// newTimeline cuts what happened to a step.
func newTimeline(tasks []trace.Task, spans []trace.Span, start, end time.Time) *timeline {
	s := &timeline{start: start, end: end, host: leaves(spans, start, end)}
	for i := range tasks {
		t := &tasks[i]
		x := interval{start: t.Start.Sub(start).Nanoseconds(), end: t.End.Sub(start).Nanoseconds()}
		switch {
		case t.Kind == "preprocess":
			s.tilings = append(s.tilings, x)
		case t.Engine != "":
		case t.Kind == "launch" && !t.Skipped:
			k := kernelRun{x.start, x.end, x.start}
			if !t.Enqueued.IsZero() {
				k.enqueued = t.Enqueued.Sub(start).Nanoseconds()
			}
			s.kernels = append(s.kernels, k)
		case t.Kind == "copy":
			s.copies = append(s.copies, x)
		case t.Kind == "record" || t.Kind == "wait" || t.Kind == "update":
			s.events = append(s.events, x)
		}
	}
	slices.SortFunc(s.kernels, func(a, b kernelRun) int { return cmp.Compare(a.start, b.start) })
	for _, list := range [...][]interval{s.copies, s.tilings, s.events} {
		slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	}
	return s
}

// leaves cuts nested spans into their innermost pieces, in order.
func leaves(spans []trace.Span, from, to time.Time) []interval {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b trace.Span) int {
		return cmp.Or(a.Start.Compare(b.Start), b.End.Compare(a.End))
	})
	var out, open []interval
	emit := func(start, end int64, c cause) {
		if start < end {
			out = append(out, interval{start, end, c})
		}
	}
	at := int64(0) // everything before is emitted
	closeUpTo := func(t int64) {
		for len(open) > 0 && open[len(open)-1].end <= t {
			last := open[len(open)-1]
			emit(max(at, last.start), last.end, last.cause)
			at = max(at, last.end)
			open = open[:len(open)-1]
		}
	}
	whole := to.Sub(from).Nanoseconds()
	for _, sp := range spans {
		x := interval{max(sp.Start.Sub(from).Nanoseconds(), 0), min(sp.End.Sub(from).Nanoseconds(), whole), causes[sp.Category]}
		if x.start >= x.end {
			continue
		}
		closeUpTo(x.start)
		if n := len(open); n > 0 {
			emit(max(at, open[n-1].start), x.start, open[n-1].cause)
		}
		at = max(at, x.start)
		open = append(open, x)
	}
	closeUpTo(whole)
	return out
}

// hostBusy returns the time in which the host worked and did not wait.
func (s *timeline) hostBusy() int64 {
	whole := s.end.Sub(s.start).Nanoseconds()
	for _, x := range s.host {
		if x.cause == waiting || x.cause == ringCause {
			whole -= x.end - x.start
		}
	}
	return whole
}

// busy returns the time in which a kernel ran, and the idle time by cause. Both
// together are the step.
func (s *timeline) busy() (int64, Idle) {
	whole := s.end.Sub(s.start).Nanoseconds()
	var idle Idle
	busy, at := int64(0), int64(0)
	w := walker{s: s}
	for _, k := range s.kernels {
		start, end := max(k.start, 0), min(k.end, whole)
		if start > at {
			w.gap(&idle, at, min(start, whole), k.enqueued)
			at = start
		}
		if end > at {
			busy += end - at
			at = end
		}
	}
	if at < whole {
		w.gap(&idle, at, whole, whole)
	}
	return busy, idle
}

// walker looks intervals up in order of time.
type walker struct {
	s                            *timeline
	host, copies, tilings, event int
}

// gap adds an idle time before a kernel. Until the kernel was enqueued the device
// waits for what the host does, then for what stands before the kernel.
func (w *walker) gap(idle *Idle, from, to, enqueued int64) {
	for from < to {
		var c cause
		next := to
		if from < enqueued {
			next = min(next, enqueued)
			c = w.hostAt(from, &next)
			if c == waiting {
				c = w.deviceAt(from, &next, other)
			}
		} else {
			c = w.deviceAt(from, &next, launchCause)
		}
		idle.add(c, next-from)
		from = next
	}
}

// hostAt tells what the host does at a moment, and until when at most.
func (w *walker) hostAt(at int64, until *int64) cause {
	if i := covering(w.s.host, &w.host, at, until); i >= 0 {
		return w.s.host[i].cause
	}
	return other
}

// deviceAt tells what the device does at a moment besides running kernels.
func (w *walker) deviceAt(at int64, until *int64, nothing cause) cause {
	c := nothing
	if covering(w.s.events, &w.event, at, until) >= 0 {
		c = eventCause
	}
	if covering(w.s.tilings, &w.tilings, at, until) >= 0 {
		c = tilingCause
	}
	if covering(w.s.copies, &w.copies, at, until) >= 0 {
		c = copyCause
	}
	return c
}

// covering returns the interval of a sorted list that holds a moment, -1 for none,
// and lowers until to the next moment at which that changes. Moments come in
// order; at remembers how far they came.
func covering(list []interval, at *int, moment int64, until *int64) int {
	for *at < len(list) && list[*at].end <= moment {
		*at++
	}
	for i := *at; i < len(list); i++ {
		x := &list[i]
		if x.start > moment {
			*until = min(*until, x.start)
			return -1
		}
		if x.end > moment {
			*until = min(*until, x.end)
			return i
		}
	}
	return -1
}

// add adds time to a cause.
func (i *Idle) add(c cause, ns int64) {
	switch c {
	case tilingCause:
		i.Tiling += ns
	case copyCause:
		i.Copy += ns
	case launchCause:
		i.Launch += ns
	case eventCause:
		i.Event += ns
	case ringCause:
		i.Ring += ns
	default:
		i.Other += ns
	}
}
