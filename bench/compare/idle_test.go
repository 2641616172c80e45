package compare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device/trace"
)

var origin = time.Unix(100, 0)

func ns(n int) time.Time { return origin.Add(time.Duration(n)) }

// line is a timeline under construction.
type line struct {
	tasks []trace.Task
	spans []trace.Span
}

func (l *line) host(category string, from, to int) {
	l.spans = append(l.spans, trace.Span{Category: category, Start: ns(from), End: ns(to)})
}

func (l *line) task(kind string, enqueued, from, to int) {
	l.tasks = append(l.tasks, trace.Task{Kind: kind, Enqueued: ns(enqueued), Start: ns(from), End: ns(to)})
}

func (l *line) cut(from, to int) *timeline { return newTimeline(l.tasks, l.spans, ns(from), ns(to)) }

func TestIdleCauses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		build func(l *line)
		busy  int64
		idle  Idle
	}{
		{"nothing", func(*line) {}, 0, Idle{Other: 100}},
		{"the host's work before a kernel", func(l *line) {
			l.host("setup", 0, 10)
			l.host("tiling", 10, 30)
			l.host("lookup", 30, 35)
			l.host("launch", 35, 50)
			l.task("launch", 50, 60, 90)
		}, 30, Idle{Other: 10 + 10, Tiling: 25, Launch: 15 + 10}},
		{"work behind a kernel hides", func(l *line) {
			l.task("launch", 0, 0, 60)
			l.host("tiling", 0, 70)
			l.host("launch", 70, 75)
			l.task("launch", 75, 80, 100)
		}, 80, Idle{Tiling: 10, Launch: 5 + 5}},
		{"a copy before a kernel that was enqueued long ago", func(l *line) {
			l.task("launch", 0, 50, 100)
			l.task("copy", 0, 10, 40)
			l.task("wait", 0, 40, 45)
			l.task("record", 0, 40, 42)
		}, 50, Idle{Launch: 10 + 5, Copy: 30, Event: 5}},
		{"a copy beside the host's own work", func(l *line) {
			l.host("tiling", 0, 40)
			l.task("copy", 0, 0, 40)
			l.task("launch", 40, 40, 100)
		}, 60, Idle{Tiling: 40}},
		{"calls of events and copies", func(l *line) {
			l.host("event", 0, 20)
			l.host("copy", 20, 50)
			l.host("ring", 50, 60)
			l.task("launch", 60, 60, 100)
		}, 40, Idle{Event: 20, Copy: 30, Ring: 10}},
		{"a host that waits, while the device copies", func(l *line) {
			l.task("launch", 0, 0, 50)
			l.host("wait", 10, 90)
			l.task("copy", 0, 55, 80)
		}, 50, Idle{Copy: 25, Other: 25}},
		{"tilings on the device", func(l *line) {
			l.tasks = append(l.tasks, trace.Task{Kind: "preprocess", Engine: "AICPU", Start: ns(10), End: ns(60)})
			l.task("launch", 0, 70, 100)
		}, 30, Idle{Launch: 20, Tiling: 50}},
		{"kernels beside each other count once", func(l *line) {
			l.task("launch", 0, 10, 60)
			l.task("launch", 0, 20, 50)
			l.task("launch", 0, 55, 80)
		}, 70, Idle{Launch: 10, Other: 20}},
		{"outer spans, and what reaches over the ends", func(l *line) {
			l.host("execute", -50, 150)
			l.host("tiling", 20, 40)
			l.task("launch", 60, -20, 10)
			l.task("launch", 90, 95, 150)
		}, 15, Idle{Launch: 10 + 50 + 5, Tiling: 20}},
		{"skipped kernels and engines' rows do not count", func(l *line) {
			l.tasks = append(l.tasks, trace.Task{Kind: "launch", Skipped: true, Start: ns(0), End: ns(50)}, trace.Task{Kind: "copy", Engine: "copy engine", Start: ns(0), End: ns(50)})
		}, 0, Idle{Other: 100}},
		{"a device without moments of calls", func(l *line) {
			l.host("launch", 0, 30)
			l.tasks = append(l.tasks, trace.Task{Kind: "launch", Start: ns(40), End: ns(100)})
		}, 60, Idle{Launch: 30, Other: 10}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l line
			tt.build(&l)
			busy, idle := l.cut(0, 100).busy()
			assert.Equal(t, tt.busy, busy)
			assert.Equal(t, tt.idle, idle)
			require.EqualValues(t, 100, busy+idle.Sum())
		})
	}
}

func TestLeaves(t *testing.T) {
	var l line
	l.host("execute", 0, 100)
	l.host("tiling", 10, 20)
	l.host("launch", 20, 30)
	l.host("event", 22, 25)
	l.host("wait", 120, 130)
	assert.Equal(t, []interval{
		{0, 10, launchCause}, {10, 20, tilingCause}, {20, 22, launchCause}, {22, 25, eventCause}, {25, 30, launchCause}, {30, 100, launchCause}, {120, 130, waiting},
	}, l.cut(0, 200).host)
	assert.EqualValues(t, 190, l.cut(0, 200).hostBusy())
}

func TestMedian(t *testing.T) {
	m := median([]Step{{Ns: 9}, {Ns: 1}, {Ns: 5}})
	assert.EqualValues(t, 5, m.Ns)
}
