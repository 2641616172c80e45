package sink

import (
	"slices"

	"goatb/kernel"
	"goatb/status"
	"goatb/tiling/sink/argsformat"
)

// Sequence makes the tasks of one sunk operation from the tasks that the
// operation has by itself.
type Sequence struct {
	Op   *Op
	Mark *Mark
	// Streams and Events are the operation's attached streams and events: one of
	// each.
	Streams, Events []int
	Workspaces      []Workspace
	Soc             *Profile
	// Platform is what the device tiling learns about the machine.
	Platform *kernel.Machine
}

// Update makes the sequence of form update; of the tasks, the first FFTS_PLUS,
// ALL_KERNEL or VECTOR_ALL_KERNEL is the kernel that is updated:
//
//	PREPROCESS_KERNEL  attached stream  {tiling_context}{*op_type}{}, with
//	                                    {wsK*} for the log of a custom function
//	EVENT_WAIT         main stream
//	NOP x N            main stream      N is the profile's prefetch number
//	the kernel         main stream      with {tiling_context.tiling_data}
//	UPDATE             attached stream  {tiling_context.tiling_key}{tiling_context.block_dim}
//	EVENT_RECORD       attached stream
//
// The operation's other tasks keep their places around it; those before do not
// wait for the tiling. Targets of updates count in the result. The given tasks
// stay as they are, and where there is an error nothing has been made. Errors
// name the operation and are ErrInvalidParam: no task to update; arguments
// without a workspace, empty or not readable; other than one attached stream or
// event; no device tiling function; no platform; no prefetch number. Those of
// Sinks come first.
func (s *Sequence) Update(tasks []Task) ([]Task, error) {
	out, err := s.update(tasks)
	return out, s.place(err)
}

func (s *Sequence) place(err error) error {
	return status.Place(err, status.ErrInvalidParam, s.Op.Type, "gen", s.Op.Name)
}

func (s *Sequence) update(tasks []Task) ([]Task, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	nops, err := s.Soc.Nops()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(tasks, func(t Task) bool {
		return t.Kind == FFTSPlusTask || t.Kind == AllKernelTask || t.Kind == VectorAllKernelTask
	})
	if at < 0 {
		return nil, status.Errorf(status.ErrInvalidParam, "want a task of kind %s, %s or %s to update, got none in %d tasks", FFTSPlusTask, AllKernelTask, VectorAllKernelTask, len(tasks))
	}
	target, err := patchTarget(tasks[at])
	if err != nil {
		return nil, err
	}
	attached, event, id := s.Streams[0], s.Events[0], s.Op.ID
	out := append(make([]Task, 0, len(tasks)+nops+4), tasks[:at]...)
	out = append(out, s.tiling(argsformat.Item{Kind: argsformat.Placeholder}, true))
	out = append(out, Task{Kind: WaitTask, Stream: target.Stream, Op: id, Event: event})
	for range nops {
		out = append(out, Task{Kind: NopTask, Stream: target.Stream, Op: id})
	}
	out = append(out, target)
	out = append(out, Task{Kind: UpdateTask, Stream: attached, Op: id, Args: updateArgs, Target: len(out) - 1})
	out = append(out, Task{Kind: RecordTask, Stream: attached, Op: id, Event: event})
	return append(out, tasks[at+1:]...), nil
}

// check refuses what no form can be made of.
func (s *Sequence) check() error {
	sunk, err := Sinks(s.Op, s.Mark)
	switch {
	case err != nil:
		return err
	case !sunk:
		return status.Errorf(status.ErrInternal, "want an operation that is sunk, it is marked %s", s.Mark)
	case len(s.Streams) != 1:
		return status.Errorf(status.ErrInvalidParam, "want 1 attached stream, got %d", len(s.Streams))
	case len(s.Events) != 1:
		return status.Errorf(status.ErrInvalidParam, "want 1 event, got %d", len(s.Events))
	case s.Op.Registration == nil || s.Op.Registration.Function == "":
		return status.Errorf(status.ErrInvalidParam, "want a tiling function on the device, got none")
	case s.Platform == nil:
		return status.Errorf(status.ErrInvalidParam, "want platform information for the tiling, got none")
	}
	return nil
}

// tiling is the task that runs the tiling function. `log` adds the workspace of
// the log, where there is one.
func (s *Sequence) tiling(sync argsformat.Item, log bool) Task {
	t := Task{
		Kind: PreprocessTask, Stream: s.Streams[0], Op: s.Op.ID, Library: s.Op.Registration.Function, Entry: Entry,
	}
	args := tilingArgs(sync)
	if s.Op.custom() {
		t.Engine = CustomAICPU
		if log {
			args = append(args, argsformat.LogWorkspace(int32(max(len(s.Workspaces)-1, 0))))
		}
	}
	t.Args = args.String()
	return t
}

// patchTarget is the kernel as it is updated. In mixed kernels the first part
// that does not clear memory gets the tiling data.
func patchTarget(t Task) (Task, error) {
	t.Updated = true
	t.BlockDim = max(t.BlockDim, 1)
	if t.Kind != FFTSPlusTask {
		args, _, err := patchKernelArgs(t.Args)
		t.Args = args
		return t, err
	}
	at := slices.IndexFunc(t.Contexts, func(c Context) bool { return c.OpType != Atomic })
	if at < 0 {
		return t, status.Errorf(status.ErrInvalidParam, "want a part of the mixed kernel that is not %s, got none in %d", Atomic, len(t.Contexts))
	}
	t.Contexts = slices.Clone(t.Contexts)
	c := &t.Contexts[at]
	args, replaced, err := patchKernelArgs(c.Args)
	if err != nil {
		return t, err
	}
	c.Args = args
	if !replaced {
		c.Addresses = append(slices.Clone(c.Addresses), 0)
		c.AddressSize++
	}
	return t, nil
}
