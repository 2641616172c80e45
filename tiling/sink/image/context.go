package image

import (
	"bytes"

	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Context is what a tiling function on the device sees: the bytes of a tiling
// context, and nothing of the host. It is valid while the function runs, on the
// goroutine that runs it.
type Context struct {
	mem  *Memory
	cell []byte // the table of cells
	// inputs and outputs are numbers of tensors; all counts the inputs of the
	// function.
	inputs, outputs, all int
	info                 info
	kind, name           []byte
	scratch              scratch
}

// open reads the heads at the address of a kernel context.
func (c *Context) open(m *Memory, at Address) error {
	c.mem = m
	head, err := m.Bytes(at, KernelContextBytes)
	if err != nil {
		return status.Errorf(status.ErrInvalidParam, "tiling context: %w", err)
	}
	c.inputs, c.outputs = int(le.Uint32(head[contextTensors:])), int(le.Uint32(head[contextTensors+4:]))
	all, outs := le.Uint64(head[contextInputs:]), le.Uint64(head[contextOutputs:])
	if c.inputs < 0 || c.outputs < 0 || c.inputs > maxTensor || c.outputs > maxTensor || all != uint64(c.inputs+c.outputs+extraInputs) || outs != numOutputs {
		return status.Errorf(status.ErrInternal, "tiling context: %d inputs, %d of them tensors, %d outputs of operation, %d of tiling", all, c.inputs, c.outputs, outs)
	}
	c.all = int(all)
	if c.cell, err = m.Bytes(at.At(KernelContextBytes), int64(c.all+numOutputs)*wordBytes); err != nil {
		return err
	}
	if c.name, err = text(m, Address(le.Uint64(head[contextName:]))); err != nil {
		return err
	}
	if c.kind, err = text(m, Address(le.Uint64(head[contextType:]))); err != nil {
		return err
	}
	return c.info.read(m, Address(le.Uint64(head[contextInfo:])))
}

// text reads a text that ends with a zero byte.
func text(m *Memory, at Address) ([]byte, error) {
	rest, err := m.from(at)
	if err != nil {
		return nil, err
	}
	end := bytes.IndexByte(rest[:min(len(rest), maxText)], 0)
	if end < 0 {
		return nil, status.Errorf(status.ErrInternal, "tiling context: want a text that ends, at %#x", uint64(at))
	}
	return rest[:end:end], nil
}

// value returns the cell of the function's input or output i.
func (c *Context) value(i int) ([]byte, error) {
	return c.mem.Bytes(Address(le.Uint64(c.cell[wordBytes*i:])), wordBytes)
}

func (c *Context) word(i int) (uint64, error) {
	v, err := c.value(i)
	if err != nil {
		return 0, err
	}
	return le.Uint64(v), nil
}

// Name is the operation's place, Type what its tiling function is registered
// under.
func (c *Context) Name() string { return string(c.name) }

// Type is described at Name.
func (c *Context) Type() string { return string(c.kind) }

// Inputs and Outputs count the connected tensors of the operation.
func (c *Context) Inputs() int { return c.inputs }

// Outputs is described at Inputs.
func (c *Context) Outputs() int { return c.outputs }

// tensor reads tensor i, inputs first.
func (c *Context) tensor(i int) (d tensor.Desc, data Address, err error) {
	at, err := c.word(i)
	if err != nil {
		return d, 0, err
	}
	b, err := c.mem.Bytes(Address(at), TensorBytes)
	if err != nil {
		return d, 0, err
	}
	return getTensor(b)
}

// Input describes input i and returns its data: nil unless the operation
// declares that its tiling reads the value. An input that is not there is
// ErrInvalidParam.
func (c *Context) Input(i int) (tensor.Desc, []byte, error) {
	if i < 0 || i >= c.inputs {
		return tensor.Desc{}, nil, status.Errorf(status.ErrInvalidParam, "tiling context: want an input from 0 to %d, got %d", c.inputs-1, i)
	}
	d, at, err := c.tensor(i)
	if err != nil || at == 0 {
		return d, nil, err
	}
	data, err := c.mem.Bytes(at, d.Bytes())
	return d, data, err
}

// Output describes output i. One that is not there is ErrInvalidParam.
func (c *Context) Output(i int) (tensor.Desc, error) {
	if i < 0 || i >= c.outputs {
		return tensor.Desc{}, status.Errorf(status.ErrInvalidParam, "tiling context: want an output from 0 to %d, got %d", c.outputs-1, i)
	}
	d, _, err := c.tensor(c.inputs + i)
	return d, err
}

// Extra inputs of a tiling function, behind its tensors.
const (
	compileInfoInput = iota
	platformInput
	tilingFuncInput
	deterministicInput
	levelInput
)

func (c *Context) extra(i int) (uint64, error) { return c.word(c.inputs + c.outputs + i) }

// Platform is the machine. There is always one: its absence is
// ErrInvalidTensorAddr.
func (c *Context) Platform() (kernel.Machine, error) {
	at, err := c.extra(platformInput)
	if err != nil {
		return kernel.Machine{}, err
	}
	b, err := c.mem.Bytes(Address(at), PlatformBytes)
	if err != nil {
		return kernel.Machine{}, err
	}
	return getPlatform(b), nil
}

// Deterministic tells whether results must not depend on scheduling, and how
// strictly.
func (c *Context) Deterministic() (on bool, level uint32, err error) {
	v, err := c.extra(deterministicInput)
	if err != nil {
		return false, 0, err
	}
	l, err := c.extra(levelInput)
	return v != 0, uint32(l), err
}

// Set stores an output. Tiling data and workspaces have functions of their own;
// setting them is ErrInvalidParam, as is an unknown output. Of all outputs only
// tiling key and block dim reach the launch.
func (c *Context) Set(o Output, v uint64) error {
	if o >= numOutputs || o == tilingDataOut || o == workspacesOut {
		return status.Errorf(status.ErrInvalidParam, "tiling context: want an output that is a value, got %d", o)
	}
	cell, err := c.value(c.all + int(o))
	if err != nil {
		return err
	}
	le.PutUint64(cell, v)
	return nil
}

// Get reads an output back.
func (c *Context) Get(o Output) (uint64, error) {
	if o >= numOutputs {
		return 0, status.Errorf(status.ErrInvalidParam, "tiling context: unknown output %d", o)
	}
	return c.word(c.all + int(o))
}

// data returns the head of the tiling data, and the room.
func (c *Context) data() (head, room []byte, err error) {
	at, err := c.word(c.all + int(tilingDataOut))
	if err != nil {
		return nil, nil, err
	}
	if head, err = c.mem.Bytes(Address(at), DataHeaderBytes); err != nil {
		return nil, nil, err
	}
	room, err = c.mem.Bytes(Address(le.Uint64(head[16:])), int64(le.Uint64(head)))
	return head, room, err
}

// Grow adds n bytes to the tiling data and returns them, with what was there
// before. More than the room is ErrOutOfDeviceMemory, and nothing is added.
func (c *Context) Grow(n int64) ([]byte, error) {
	head, room, err := c.data()
	if err != nil {
		return nil, err
	}
	used := int64(le.Uint64(head[8:]))
	if used < 0 || n < 0 || used > int64(len(room)) || n > int64(len(room))-used {
		return nil, status.Errorf(status.ErrOutOfDeviceMemory, "tiling data: want %d bytes behind %d, got room for %d", n, used, len(room))
	}
	le.PutUint64(head[8:], uint64(used+n))
	return room[used : used+n : used+n], nil
}

// Append adds bytes to the tiling data. Error as Grow.
func (c *Context) Append(b []byte) error {
	room, err := c.Grow(int64(len(b)))
	copy(room, b)
	return err
}

// Data returns the tiling data.
func (c *Context) Data() ([]byte, error) {
	head, room, err := c.data()
	if err != nil {
		return nil, err
	}
	return room[:min(le.Uint64(head[8:]), uint64(len(room)))], nil
}

// reset empties the tiling data and the workspace vector.
func (c *Context) reset() error {
	head, _, err := c.data()
	if err != nil {
		return err
	}
	le.PutUint64(head[8:], 0)
	return c.SetWorkspaces(nil)
}

// SetWorkspaces stores the sizes of the workspaces. More than MaxWorkspaces are
// ErrInvalidParam; one beyond the bound that the tiling on the host gave, or one
// that it did not ask for, is ErrInvalidWorkspaceSize: the device cannot enlarge
// what the host has planned.
func (c *Context) SetWorkspaces(sizes []int64) error {
	if len(sizes) > MaxWorkspaces {
		return status.Errorf(status.ErrInvalidParam, "tiling: want at most %d workspaces, got %d", MaxWorkspaces, len(sizes))
	}
	for i, n := range sizes {
		bound := int64(0)
		if i < c.info.workspaces {
			bound = c.info.bound(i)
		}
		if n < 0 || n > bound {
			return status.Errorf(status.ErrInvalidWorkspaceSize, "tiling: want at most the %d bytes that the host planned for workspace %d, got %d", bound, i, n)
		}
	}
	at, err := c.word(c.all + int(workspacesOut))
	if err != nil {
		return err
	}
	v, err := c.mem.Bytes(Address(at), VectorHeaderBytes+MaxWorkspaces*wordBytes)
	if err != nil {
		return err
	}
	le.PutUint64(v[8:], uint64(len(sizes)))
	for i, n := range sizes {
		le.PutUint64(v[VectorHeaderBytes+wordBytes*i:], uint64(n))
	}
	return nil
}
