package image

import (
	"sync"
	"sync/atomic"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
)

// Function is a tiling function on the device. It reads its context and writes
// its outputs there. It runs on several goroutines at once, each with a context
// of its own.
type Function func(c *Context) error

// Functions are the tiling functions of a device, by operation type. It must not
// change once a model uses it; its entry may run on several goroutines at once.
type Functions struct {
	// Checked makes it an error when a tiling decides something that does not
	// reach the launch otherwise than the tiling on the host did.
	Checked bool
	// Ran counts the tilings that succeeded; it may be nil.
	Ran *atomic.Int64
	// Log is told the workspace of the log before a function of another library
	// runs. Its failure goes to Warn and stops nothing. Both may be nil.
	Log  func(workspace []byte) error
	Warn func(error)

	byType map[string]Function

	mu    sync.Mutex // guards spare
	spare []*Context
}

// NewFunctions registers the tiling functions of kernels. A kernel that does not
// place its tiling on the device is ErrInvalidParam.
func NewFunctions(kernels ...*kernel.Kernel) (*Functions, error) {
	f := &Functions{}
	for _, k := range kernels {
		if !k.TileOn().Has(kernel.OnAICPU) {
			return nil, status.Errorf(status.ErrInvalidParam, "tiling function of %s: want placement %s, got %s", k.Name(), kernel.OnAICPU, k.TileOn())
		}
		f.Register(k.Name(), func(c *Context) error { return c.tile(k) })
	}
	return f, nil
}

// Register adds a function for an operation type. The last one counts.
func (f *Functions) Register(opType string, fn Function) {
	if f.byType == nil {
		f.byType = map[string]Function{}
	}
	f.byType[opType] = fn
}

// Has reports whether there is a function for an operation type.
func (f *Functions) Has(opType string) bool { return f.byType[opType] != nil }

// entryName is the function that a device starts for every tiling.
const entryName = "RunAicpuRpcSrvLaunch"

// Entry is the function that the device starts for every tiling. Its input 0 is
// the arguments of the task, and the addresses in them and in the context name
// its other inputs and its outputs. Errors: ErrInvalidParam for arguments that
// are missing, a nil operation type or context, and a type without function; else
// those of the tiling function, with the operation's names.
func (f *Functions) Entry() *device.Function {
	return &device.Function{Name: entryName, Run: f.run}
}

func (f *Functions) run(a *device.CPUArgs) error {
	if len(a.Inputs) == 0 || a.Inputs[0] == nil {
		return status.Errorf(status.ErrInvalidParam, "tiling: want arguments, got none")
	}
	c := f.take()
	c.scratch.mem = Memory{a.Inputs, a.Outputs}
	err := f.invoke(c, a.Inputs[0])
	f.give(c)
	return err
}

// take returns a context that no run uses.
func (f *Functions) take() *Context {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.spare)
	if n == 0 {
		return &Context{}
	}
	c := f.spare[n-1]
	f.spare = f.spare[:n-1]
	return c
}

// give takes a context back whose run is over.
func (f *Functions) give(c *Context) {
	c.release()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.spare = append(f.spare, c)
}

// invoke runs the tiling whose task has the arguments args, in the memory of
// c.scratch. It checks the arguments, calls the function of the operation's type
// and, when that succeeds, sets the flag of the arguments, where there is one, to
// 1.
func (f *Functions) invoke(c *Context, args []byte) error {
	m := &c.scratch.mem
	w, err := readWords(args)
	if err != nil {
		return err
	}
	if w.Type == 0 || w.Context == 0 {
		return status.Errorf(status.ErrInvalidParam, "tiling: want the addresses of context and operation type, got %#x and %#x", uint64(w.Context), uint64(w.Type))
	}
	kind, err := text(m, w.Type)
	if err != nil {
		return err
	}
	fn := f.byType[string(kind)]
	if fn == nil {
		return status.Errorf(status.ErrInvalidParam, "tiling: no function is registered for operation type %q", kind)
	}
	f.log(m, &w)
	if err := c.open(m, w.Context); err != nil {
		return c.place(err)
	}
	if err := c.reset(); err != nil {
		return c.place(err)
	}
	if err := fn(c); err != nil {
		return c.place(err)
	}
	if f.Checked {
		if err := c.checkIgnored(); err != nil {
			return c.place(err)
		}
	}
	if f.Ran != nil {
		f.Ran.Add(1)
	}
	return notify(m, w.Notify)
}

// readWords takes the argument words from behind the tensors.
func readWords(args []byte) (w Words, err error) {
	if len(args) < HeadBytes {
		return w, status.Errorf(status.ErrInvalidParam, "tiling: want arguments of at least %d bytes, got %d", HeadBytes, len(args))
	}
	size, n := int64(le.Uint32(args)), int64(le.Uint32(args[4:]))
	at := size - wordBytes*n
	if size > int64(len(args)) || n < 3 || at < HeadBytes {
		return w, status.Errorf(status.ErrInvalidParam, "tiling: arguments of %d bytes in %d with %d words", size, len(args), n)
	}
	word := func(i int64) uint64 { return le.Uint64(args[at+wordBytes*i:]) }
	w.Context, w.Type, w.Notify = Address(word(0)), Address(word(1)), Address(word(2))
	if n >= 5 {
		w.Log, w.LogBytes = Address(word(3)), int64(word(4))
	}
	return w, nil
}

// log tells the hook of the log. Failures are warnings.
func (f *Functions) log(m *Memory, w *Words) {
	if f.Log == nil || w.Log == 0 {
		return
	}
	b, err := m.Bytes(w.Log, w.LogBytes)
	if err == nil {
		err = f.Log(b)
	}
	if err != nil && f.Warn != nil {
		f.Warn(err)
	}
}

// notify sets a flag behind everything that was written before.
func notify(m *Memory, flag Address) error {
	if flag == 0 {
		return nil
	}
	b, err := m.Bytes(flag, wordBytes)
	if err != nil {
		return err
	}
	return storeFlag(b)
}

// place adds the operation's names to an error.
func (c *Context) place(err error) error {
	return status.Place(err, status.ErrInternal, string(c.kind), "tiling on the device", string(c.name))
}

// checkIgnored refuses outputs that do not reach the launch and differ from it.
func (c *Context) checkIgnored() error {
	for _, o := range ignored {
		got, err := c.Get(o)
		if err != nil {
			return err
		}
		if want := c.info.launch(o); got != want {
			return status.Errorf(status.ErrInvalidParam, "tiling: output %s does not reach the launch: want the launch's %d, got %d", o, want, got)
		}
	}
	return nil
}
