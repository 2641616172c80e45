package device

import (
	"fmt"
	"strings"

	"goatb/status"
)

// ends refuses a list whose tasks cannot all run. With one record and one wait
// for each event the order of the streams does not matter, so one walk decides.
func (c *checker) ends() error {
	w := walk{list: c.list, set: make([]bool, len(c.events)), at: make([]int, len(c.list.Streams)), sub: make([]int, len(c.list.Streams))}
	w.tasks = make([][]int, len(c.list.Streams))
	for i := range c.list.Tasks {
		s := c.list.Tasks[i].Stream
		w.tasks[s] = append(w.tasks[s], i)
	}
	for moved := true; moved; {
		moved = false
		for s := range w.tasks {
			for w.step(s) {
				moved = true
			}
		}
	}
	var stuck []string
	for s, at := range w.at {
		if at < len(w.tasks[s]) {
			i := w.tasks[s][at]
			event, _ := w.awaited(s)
			text := fmt.Sprintf("task %d (%s) on stream %s waits for event %d", i, c.list.Tasks[i].Kind, c.list.Streams[s], event)
			if u := c.events[event]; u.records+u.sets == 0 {
				text += ", which nothing records"
			}
			stuck = append(stuck, text)
		}
	}
	if stuck == nil {
		return nil
	}
	err := status.Errorf(status.ErrInvalidGraph, "%w: %s", FaultNoEnd, strings.Join(stuck, "; "))
	return status.Place(err, status.ErrInvalidGraph, c.list.Name, "load", "")
}

// walk runs the events of a list.
type walk struct {
	list  *TaskList
	tasks [][]int // of each stream
	at    []int   // the next task of each stream
	sub   []int   // the next sub kernel in it
	set   []bool  // events
}

// awaited returns the event that the next step of stream s needs.
func (w *walk) awaited(s int) (EventID, bool) {
	t := &w.list.Tasks[w.tasks[s][w.at[s]]]
	switch t.Kind {
	case EventWaitTask:
		return t.Event, true
	case SuperKernelTask:
		if sunk := t.Super[w.sub[s]].Sunk; sunk != nil {
			return sunk.Flag, true
		}
	}
	return 0, false
}

// step runs the next task of stream s, or the next part of it; false says that
// it cannot.
func (w *walk) step(s int) bool {
	if w.at[s] == len(w.tasks[s]) {
		return false
	}
	if e, waits := w.awaited(s); waits && !w.set[e] {
		return false
	}
	t := &w.list.Tasks[w.tasks[s][w.at[s]]]
	if t.Kind == SuperKernelTask && w.sub[s]+1 < len(t.Super) {
		w.sub[s]++
		return true
	}
	switch {
	case t.Kind == EventRecordTask:
		w.set[t.Event] = true
	case t.Kind == PreprocessTask && t.Preprocess.Notify:
		w.set[t.Preprocess.Flag] = true
	}
	w.at[s]++
	w.sub[s] = 0
	return true
}
