package image

import (
	"math"

	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// scratch is storage for reading a problem back; nothing in it outlives a run.
type scratch struct {
	mem       Memory
	problem   kernel.Problem
	descs     []tensor.Desc
	values    [][]int64
	flat      []int64
	workspace [1]int64
}

// release forgets the memory of the last run.
func (c *Context) release() {
	s := &c.scratch
	s.mem, s.problem = Memory{}, kernel.Problem{}
	c.mem, c.cell, c.kind, c.name, c.info = nil, nil, nil, nil, info{}
}

// tile runs the tiling function of a kernel.
func (c *Context) tile(k *kernel.Kernel) error {
	p, err := c.problem(k)
	if err != nil {
		return err
	}
	dst, err := c.Grow(int64(k.TilingSize(p)))
	if err != nil {
		return err
	}
	c.scratch.workspace[0] = max(k.Scratch(p), 0)
	if err := c.SetWorkspaces(c.scratch.workspace[:min(c.scratch.workspace[0], 1)]); err != nil {
		return err
	}
	g, err := k.Tile(p, dst)
	if err != nil {
		return err
	}
	if int64(g.Blocks) > math.MaxUint32-1 {
		return status.Errorf(status.ErrInternal, "tiling: want a block dim of 32 bits, got %d", g.Blocks)
	}
	if err := c.Set(TilingKey, g.Key); err != nil {
		return err
	}
	return c.Set(BlockDim, uint64(g.Blocks))
}

// problem reads the kernel's problem back from the context.
func (c *Context) problem(k *kernel.Kernel) (*kernel.Problem, error) {
	s, i := &c.scratch, &c.info
	n := i.in + i.val + i.out
	if cap(s.descs) < n {
		s.descs = make([]tensor.Desc, n)
	}
	if cap(s.values) < i.val {
		s.values = make([][]int64, i.val)
	}
	s.descs, s.values = s.descs[:n], s.values[:i.val]
	clear(s.descs)
	clear(s.values)
	s.flat = s.flat[:0]
	p := &s.problem
	*p = kernel.Problem{
		In: s.descs[:i.in:i.in], Val: s.descs[i.in : i.in+i.val : i.in+i.val], Out: s.descs[i.in+i.val:],
		Options: i.kernelOptions(), Values: s.values,
	}
	for d := range n {
		if err := c.operand(d); err != nil {
			return nil, err
		}
	}
	var err error
	if p.Machine, err = c.Platform(); err != nil {
		return nil, err
	}
	if len(i.paramBytes()) != k.ParamSize() {
		return nil, status.Errorf(status.ErrInternal, "tiling context: want %d bytes of parameters of %s, got %d", k.ParamSize(), k.Name(), i.params)
	}
	return p, k.ViewParams(p, i.paramBytes())
}

// operand reads declared operand d: the descriptor, and the value of one that
// the tiling reads.
func (c *Context) operand(d int) (err error) {
	s, i := &c.scratch, &c.info
	n := i.instance(d)
	switch {
	case n < 0:
		return nil
	case d >= i.in+i.val:
		s.descs[d], err = c.Output(n)
		return err
	}
	t := device.Tensor{}
	if t.Desc, t.Host, err = c.Input(n); err != nil {
		return err
	}
	s.descs[d] = t.Desc
	if d < i.in {
		return nil
	}
	from := len(s.flat)
	if s.flat, err = t.AppendValues(s.flat); err != nil {
		return status.Errorf(status.CodeOf(err), "value %d of the tiling: %w", d-i.in, err)
	}
	s.values[d-i.in] = s.flat[from:len(s.flat):len(s.flat)]
	return nil
}
