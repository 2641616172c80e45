package device

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// String names the kind, such as "all-kernel".
func (k TaskKind) String() string {
	if k < KernelTask || k > CopyTask {
		return "kind " + strconv.Itoa(int(k))
	}
	return [...]string{"kernel", "all-kernel", "super-kernel", "preprocess", "event-wait", "event-record", "nop", "update", "copy"}[k-KernelTask]
}

// Initial returns the states of the list's tasks before the first execution.
func (l *TaskList) Initial() []TaskState {
	states := make([]TaskState, len(l.Tasks))
	updated := l.Updated()
	for i := range l.Tasks {
		if k := l.Tasks[i].Kernel; k != nil {
			states[i] = TaskState{Blocks: uint32(k.Blocks), Key: k.Key}
		}
		for _, s := range l.Tasks[i].Super {
			states[i] = TaskState{Blocks: max(states[i].Blocks, uint32(s.Kernel.Blocks)), Key: s.Kernel.Key}
		}
		if updated[i] {
			states[i].Blocks = BlocksPending
		}
	}
	return states
}

// Dump writes the list as a table, a line for each task in order of
// distribution: index, stream, id on the stream, kind, what it is about, block
// dim and tiling key, format. states is what Model.States returned, nil for a
// list that is not loaded. The block dim of a kernel that is tiled on the device
// is 0xFFFFFFFF until the first update.
func (l *TaskList) Dump(w io.Writer, states []TaskState) error {
	if states == nil {
		states = l.Initial()
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "model %s: %d tasks, %d events, streams", l.Name, len(l.Tasks), l.Events)
	for i, s := range l.Streams {
		fmt.Fprintf(tw, " %d=%s", i, s)
	}
	fmt.Fprintln(tw)
	fmt.Fprintln(tw, "#\tstream\tid\tkind\tabout\tblocks\tkey\tformat\t")
	for i := range l.Tasks {
		t := &l.Tasks[i]
		blocks, key := "", ""
		if t.Kernel != nil || t.Super != nil {
			blocks, key = blocksText(states[i].Blocks), strconv.FormatUint(states[i].Key, 10)
		}
		fmt.Fprintf(tw, "%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t\n", i, t.Stream, t.ID, t.Kind, t.about(), blocks, key, t.Format)
	}
	return tw.Flush()
}

func blocksText(blocks uint32) string {
	if blocks == BlocksPending {
		return fmt.Sprintf("0x%X", blocks)
	}
	return strconv.FormatUint(uint64(blocks), 10)
}

// about tells what a task works on.
func (t *Task) about() string {
	text := ""
	switch t.Kind {
	case EventWaitTask, EventRecordTask:
		text = fmt.Sprintf("event %d", t.Event)
	case PreprocessTask:
		text = t.Preprocess.Function.Name
		if t.Preprocess.Notify {
			text += fmt.Sprintf(" flag %d", t.Preprocess.Flag)
		}
	case UpdateTask:
		text = fmt.Sprintf("task %d of stream %d", t.Update.Task, t.Update.Target)
	case CopyTask:
		text = fmt.Sprintf("%d bytes", t.Copy.Dst.Bytes())
	case KernelTask, AllKernelTask:
		text = t.Kernel.Program.Name
	case SuperKernelTask:
		for i := range t.Super {
			if i > 0 {
				text += "+"
			}
			text += t.Super[i].Kernel.Program.Name
		}
	}
	if l := t.Label; l != nil && t.Kind != EventWaitTask && t.Kind != NopTask {
		for _, part := range [...]string{l.Op, l.Node} {
			if part != "" {
				text += " " + part
			}
		}
	}
	return text
}
