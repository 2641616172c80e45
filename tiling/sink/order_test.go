package sink

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// run plays a list as a device does: each stream takes its tasks in list order,
// a wait takes one record. `first` chooses the stream that goes next among those
// that can. It returns the tasks in the order in which they ran and fails where
// nothing can go on.
func run(t *testing.T, l *List, first func(can []int) int) []int {
	queues := make([][]int, len(l.Streams))
	for i := range l.Tasks {
		queues[l.Tasks[i].Stream] = append(queues[l.Tasks[i].Stream], i)
	}
	set := make([]bool, l.Events)
	flag := map[int]bool{}
	ready := func(k *Task) bool {
		if k.Kind == WaitTask {
			return set[k.Event]
		}
		for _, s := range k.Subs {
			if s.Dynamic && !flag[s.Flag] {
				return false
			}
		}
		return true
	}
	var order []int
	for len(order) < len(l.Tasks) {
		var can []int
		for s, q := range queues {
			if len(q) > 0 && ready(&l.Tasks[q[0]]) {
				can = append(can, s)
			}
		}
		require.NotEmpty(t, can, "nothing can go on after %v", order)
		s := can[first(can)]
		i := queues[s][0]
		queues[s] = queues[s][1:]
		switch k := &l.Tasks[i]; k.Kind {
		case WaitTask:
			set[k.Event] = false
		case RecordTask:
			require.False(t, set[k.Event], "event %d recorded twice", k.Event)
			set[k.Event] = true
		case PreprocessTask:
			flag[k.Event] = true
		}
		order = append(order, i)
	}
	for e, left := range set {
		require.False(t, left, "event %d is left for the next execution", e)
	}
	return order
}

// position tells when the first task for which is holds ran.
func position(t *testing.T, l *List, order []int, is func(*Task) bool) int {
	for at, i := range order {
		if is(&l.Tasks[i]) {
			return at
		}
	}
	require.Fail(t, "no such task")
	return -1
}

// kindOf selects tasks of an operation.
func kindOf(k TaskKind, op int64) func(*Task) bool {
	return func(t *Task) bool { return t.Kind == k && t.Op == op }
}

// project is what one stream sees, in words.
func project(l *List, stream int) (out []string) {
	for i := range l.Tasks {
		if t := &l.Tasks[i]; t.Stream == stream {
			word := t.Kind.String()
			if t.Kind == WaitTask || t.Kind == RecordTask {
				word += fmt.Sprintf(" %d", t.Event)
			}
			out = append(out, word)
		}
	}
	return out
}
