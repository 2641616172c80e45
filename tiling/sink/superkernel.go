package sink

import (
	"strings"

	"goatb/status"
	"goatb/tiling/sink/argsformat"
)

// SubNode makes the tasks of a sunk operation that is part of a super kernel;
// of the tasks, the last KERNEL or ALL_KERNEL is the kernel. Its arguments get
// tiling data, tiling key, block dim and the event's flag behind the last
// workspace, and the tiling task stands right before it. There is no wait, nop,
// update or record: the tiling sets the flag, and the kernel polls it and reads
// key and block dim itself. Errors are those of Update, but for the prefetch
// number, which is not needed.
func (s *Sequence) SubNode(tasks []Task) ([]Task, error) {
	out, err := s.subNode(tasks)
	return out, s.place(err)
}

func (s *Sequence) subNode(tasks []Task) ([]Task, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	at := lastKernel(tasks)
	if at < 0 {
		return nil, status.Errorf(status.ErrInvalidParam, "want a task of kind %s or %s in a super kernel, got none in %d tasks", KernelTask, AllKernelTask, len(tasks))
	}
	flag := argsformat.Event(int32(s.Events[0]))
	target := tasks[at]
	args, _, err := patchKernelArgs(target.Args, argsformat.Context(argsformat.TilingKey), argsformat.Context(argsformat.BlockDim), flag)
	if err != nil {
		return nil, err
	}
	target.Args, target.Updated, target.BlockDim = args, true, max(target.BlockDim, 1)
	tiling := s.tiling(flag, false)
	tiling.Event = s.Events[0]
	out := append(make([]Task, 0, len(tasks)+1), tasks[:at]...)
	return append(append(out, tiling, target), tasks[at+1:]...), nil
}

func lastKernel(tasks []Task) int {
	for i := len(tasks) - 1; i >= 0; i-- {
		if k := tasks[i].Kind; k == KernelTask || k == AllKernelTask {
			return i
		}
	}
	return -1
}

// Member is an operation of a super kernel with the tasks that it has in it:
// those of SubNode for a sunk one, else its own.
type Member struct {
	Op    *Op
	Mark  *Mark
	Tasks []Task
}

// SuperKernel fuses operations into one launch.
type SuperKernel struct {
	// Op is the id of the super kernel, Name its place and Stream its main stream.
	Op     int64
	Name   string
	Stream int
	// FFTSAddr puts the address of the mixed-kernel control block first, and
	// DebugWorkspace a workspace last.
	FFTSAddr, DebugWorkspace bool
}

// Fuse makes the tasks of the super kernel: the tilings of its members, on their
// attached streams, then the launch. Errors name super kernel and member: one
// that is kept out of super kernels (Fusion.KeptOut) or reuses its binary
// without being sunk (both ErrInvalidParam), tasks other than one kernel and its
// tiling (ErrInvalidGraph), and arguments that cannot be read.
func (k *SuperKernel) Fuse(members []Member) ([]Task, error) {
	launch := Task{Kind: SuperKernelTask, Stream: k.Stream, Op: k.Op}
	var args argsformat.Format
	if k.FFTSAddr {
		args = append(args, argsformat.Item{Kind: argsformat.FFTSAddr})
	}
	var out []Task
	for i := range members {
		m := &members[i]
		tiling, sub, f, err := m.split()
		if err != nil {
			return nil, status.Place(err, status.ErrInvalidParam, k.Name, "gen", m.Op.Name+" ("+m.Op.Type+")")
		}
		if tiling != nil {
			tiling.Op, tiling.InSuper, tiling.Sub = k.Op, true, m.Op.ID
			out = append(out, *tiling)
		}
		launch.Subs = append(launch.Subs, sub)
		args = append(args, f.In(m.Op.ID)...)
	}
	if len(members) == 0 {
		return nil, status.Place(status.Errorf(status.ErrInvalidGraph, "want operations to fuse, got none"), status.ErrInvalidGraph, k.Name, "gen", "")
	}
	if k.DebugWorkspace {
		args = append(args, argsformat.LogWorkspace(0))
	}
	launch.Args = args.String()
	return append(out, launch), nil
}

// split takes a member's tasks apart: the tiling, with arguments as those of a
// sub node, and the kernel with the format of its arguments.
func (m *Member) split() (tiling *Task, sub SubKernel, args argsformat.Format, err error) {
	if why := m.Op.Fusion.KeptOut(m.Op.Registration, m.Mark); why != "" {
		return nil, sub, nil, status.Errorf(status.ErrInvalidParam, "it cannot be part of a super kernel: %s", why)
	}
	sunk, err := Sinks(m.Op, m.Mark)
	if err != nil {
		return nil, sub, nil, err
	}
	if m.Op.Fusion.ReuseBinary && !sunk {
		return nil, sub, nil, status.Errorf(status.ErrInvalidParam, "a super kernel that reuses its binary needs its tiling on the device; it is marked %s", m.Mark)
	}
	at := lastKernel(m.Tasks)
	if at < 0 {
		return nil, sub, nil, status.Errorf(status.ErrInvalidParam, "want a task of kind %s or %s in a super kernel, got none in %d tasks", KernelTask, AllKernelTask, len(m.Tasks))
	}
	kernel := &m.Tasks[at]
	sub = SubKernel{Op: m.Op.ID, Args: kernel.Args, Flag: None, BlockDim: max(kernel.BlockDim, 1), Key: kernel.Key}
	if args, err = argsformat.Parse(kernel.Args); err != nil {
		return nil, sub, nil, err
	}
	for i := range m.Tasks {
		switch t := m.Tasks[i]; {
		case i == at:
		case t.Kind == PreprocessTask && tiling == nil:
			f, err := argsformat.Parse(t.Args)
			if err != nil {
				return nil, sub, nil, err
			}
			t.Args = f.In(m.Op.ID).String()
			tiling = &t
		default:
			return nil, sub, nil, status.Errorf(status.ErrInvalidGraph, "want one kernel and its tiling in a super kernel, got a task of kind %s besides", t.Kind)
		}
	}
	if tiling != nil && strings.Contains(kernel.Args, "event_addr") {
		sub.Dynamic, sub.Flag = true, tiling.Event
	}
	return tiling, sub, args, nil
}
