package runner

import (
	"strconv"

	"goatb/device"
	"goatb/status"
)

// Bind sets the addresses of the next launches. Nothing is done where they are
// those of the last binding. The operands have Setup's descriptors and enough
// memory; Bind checks what depends on addresses: outputs that overlap each
// other or an input in a way that the kernels do not allow
// (ErrInvalidTensorAddr).
func (r *Runner) Bind(in, out []device.Tensor, workspace device.Buffer) error {
	if r.bound && r.workspace == workspace && sameData(r.in, in) && sameData(r.out, out) {
		return nil
	}
	r.bound = false
	for i := range in {
		r.in[i] = in[i].Data
	}
	for i := range out {
		r.out[i] = out[i].Data
	}
	r.workspace, r.memory.Workspace = workspace, workspace
	r.version++
	r.memory.Version = r.version
	if err := r.checkOverlaps(); err != nil {
		return err
	}
	for k := range r.plan.kernels {
		ks := &r.plan.kernels[k]
		l := &r.launches[k]
		for i := range ks.operands {
			l.Buffers[i] = r.address(&ks.operands[i])
		}
		l.Scratch = device.Buffer{}
		if ks.scratch.size > 0 {
			l.Scratch = r.address(&ks.scratch)
		}
		r.skip[k] = r.skippable(k)
	}
	r.bindForeign()
	r.bound = true
	return nil
}

func sameData(bound []device.Buffer, ts []device.Tensor) bool {
	for i := range ts {
		if ts[i].Data != bound[i] {
			return false
		}
	}
	return true
}

// address is the memory of an operand under the current binding.
func (r *Runner) address(o *operand) device.Buffer {
	switch o.source {
	case fromInput:
		if r.in[o.index].IsNil() {
			return device.Buffer{} // a host tensor: kernels get its values in their tiling
		}
		return r.in[o.index].At(o.off, o.size)
	case fromOutput:
		return r.out[o.index].At(o.off, o.size)
	case fromWorkspace:
		return r.workspace.At(o.off, o.size)
	}
	return device.Buffer{}
}

// checkOverlaps refuses bindings that would make a kernel read what it or an
// earlier one has overwritten.
func (r *Runner) checkOverlaps() error {
	for i, in := range r.in {
		if in.Overlaps(r.workspace) {
			return status.Errorf(status.ErrInvalidTensorAddr, "it overlaps the workspace").On("input " + strconv.Itoa(i))
		}
	}
	for j, o := range r.out {
		if err := r.checkOutput(j, o); err != nil {
			return err.On("output " + strconv.Itoa(j))
		}
	}
	return nil
}

func (r *Runner) checkOutput(j int, o device.Buffer) *status.OpError {
	if o.Overlaps(r.workspace) {
		return status.Errorf(status.ErrInvalidTensorAddr, "it overlaps the workspace")
	}
	for i, in := range r.in {
		if o.Overlaps(in) && !(r.plan.alias[j*len(r.in)+i] && in.Same(o)) {
			return status.Errorf(status.ErrInvalidTensorAddr, "it overlaps input %d, which the operation still reads; want memory of its own", i)
		}
	}
	for i := range j {
		if o.Overlaps(r.out[i]) {
			return status.Errorf(status.ErrInvalidTensorAddr, "it overlaps output %d", i)
		}
	}
	return nil
}
