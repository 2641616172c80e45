package operation

import (
	atbctx "goatb/context"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/compiled"
)

// CompileOptions say how operations are compiled.
type CompileOptions struct {
	// TilingScheduleOptimize is the compilation's value of
	// ge.tiling_schedule_optimize: "0" keeps tilings on the host, "1" tiles on the
	// device what can be, "" leaves that to the graph, the context and, where
	// neither says anything, the policy, which means "1".
	TilingScheduleOptimize string
	// Online asks the context's device whether it updates queued tasks.
	Online bool
}

// Compiler captures operations for policy device-sink ahead of time, for the SoC,
// the form and the machine of a context, whose policy does not matter. It belongs
// to one goroutine.
type Compiler struct {
	c    *atbctx.Context
	opts CompileOptions
	file *compiled.File
}

// NewCompiler makes a compiler. Errors: ErrInvalidContextAddr for a nil or closed context,
// ErrInvalidParam for a bad option.
func NewCompiler(c *atbctx.Context, o CompileOptions) (*Compiler, error) {
	if _, err := c.Stream(0); err != nil {
		return nil, status.Place(err, status.ErrInvalidContextAddr, "", "compile", "")
	}
	if _, err := sink.ParseSetting(o.TilingScheduleOptimize); err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, "", "compile", "")
	}
	s := &c.Env().Sinking
	return &Compiler{c: c, opts: o, file: compiled.New(s.Soc, s.Form, c.Lowering().Machine, !o.Online)}, nil
}

// Add compiles an operation as its last Setup planned it: for those shapes, and for
// outputs bound to inputs as Setup's tensors are, which may have no memory. An
// operation may be added after each of several Setups. Equal graphs are kept once.
// Errors: those of Op.PlanCapture, and ErrInvalidContextAddr for an operation of
// another context.
func (x *Compiler) Add(op *Op) error {
	if x == nil || x.c == nil {
		return status.Errorf(status.ErrInvalidParam, "compile: the compiler is nil or zero: make one with NewCompiler")
	}
	p, err := op.PlanCapture(x.opts.TilingScheduleOptimize, !x.opts.Online)
	if err != nil {
		return err
	}
	if op.c != x.c {
		return status.Place(status.Errorf(status.ErrInvalidContextAddr, "want an operation of the compiler's context"), status.ErrInvalidContextAddr, op.name, "compile", "")
	}
	return x.file.Add(p)
}

// File is what was compiled so far. It must not be added to once a context has it.
func (x *Compiler) File() *compiled.File {
	if x == nil {
		return nil
	}
	return x.file
}
