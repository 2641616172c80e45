package operation

import (
	atbctx "goatb/context"
	"goatb/device"
	"goatb/kernelgraph"
	"goatb/status"
)

// Execute enqueues the operation on its stream and does not wait for the
// device, except for a free tiling block where the policy needs one and, where
// the host tiles a kernel from values that kernels before it make, for those.
// The pack has Setup's descriptors; addresses, host data and workspace may be
// others each time, and Execute may be called again and again after one Setup.
// A pack without any tensors stands for Setup's tensors.
//
// Errors: ErrInvalidParam without a successful Setup, ErrInvalidContextAddr for
// another context than Setup's, ErrInvalidWorkspaceSize, ErrInvalidWorkspaceAddr,
// ErrInvalidStream, ErrInvalidTensorNum, ErrInvalidTensorSize for another
// descriptor or size, ErrInvalidTensorAddr for missing, freed or overlapping
// memory, and what the operation has against new host values. Errors of the
// device's work come out of Synchronize.
func (o *Op) Execute(pack VariantPack, workspace device.Buffer, c *atbctx.Context) error {
	const sides = atbctx.HostSide | atbctx.LaunchSide
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	if err := c.Enter(sides); err != nil {
		return o.executeError(err)
	}
	defer c.Leave(sides)
	if o.repeats(&pack, workspace, c) {
		return o.executeError(o.repeat())
	}
	own := len(pack.In) == 0 && len(pack.Out) == 0
	o.again = false
	if err := o.checkExecute(&pack, &workspace, c); err != nil {
		return o.executeError(err)
	}
	err := o.run.Execute(pack.In, pack.Out, workspace, o.values.byInput)
	o.again = own && err == nil
	return o.executeError(err)
}

// repeats reports whether an Execute repeats the last one, on Setup's own tensors, with
// launches that the device has already: then it checks memory, in time that does not
// depend on the number of tensors.
func (o *Op) repeats(pack *VariantPack, workspace device.Buffer, c *atbctx.Context) bool {
	if len(pack.In) != 0 || len(pack.Out) != 0 || !o.again || o.checkReady(c) != nil {
		return false
	}
	return o.checkWorkspace(&workspace) == nil && o.run.Repeatable(workspace)
}

// repeat reads the host values and launches again.
func (o *Op) repeat() error {
	if err := o.readValues(o.in); err != nil {
		return err
	}
	return o.run.Repeat(o.in, o.values.byInput)
}

// PreLaunch is the first half of Execute: it binds addresses, computes the
// tilings and sends those on their way that the policy moves ahead. It touches
// no execute stream: another goroutine may call Launch of another operation of
// the same context meanwhile. A second PreLaunch before the Launch replaces the
// first, whose tiling blocks go back: Launch enqueues the latest. An Execute or a
// Setup that plans anew drops it. Errors as Execute, and ErrInvalidParam where the
// host tiles from values that the launch itself makes.
func (o *Op) PreLaunch(pack VariantPack, workspace device.Buffer, c *atbctx.Context) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	if err := c.Enter(atbctx.HostSide); err != nil {
		return o.executeError(err)
	}
	defer c.Leave(atbctx.HostSide)
	o.again = false
	if err := o.checkExecute(&pack, &workspace, c); err != nil {
		return o.executeError(err)
	}
	return o.executeError(o.run.PreLaunch(pack.In, pack.Out, workspace, o.values.byInput))
}

// Launch is the second half of Execute: it enqueues what PreLaunch prepared. A
// graph with users' own operations in it needs the whole context: they do both
// halves then. Errors: ErrInvalidParam without a PreLaunch before it, and when
// streams or parameters have changed since.
func (o *Op) Launch(c *atbctx.Context) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	sides := atbctx.LaunchSide
	if o.low != nil && len(o.low.foreign) > 0 {
		sides |= atbctx.HostSide
	}
	if err := c.Enter(sides); err != nil {
		return o.executeError(err)
	}
	defer c.Leave(sides)
	if err := o.checkReady(c); err != nil {
		return o.executeError(err)
	}
	return o.executeError(o.run.Launch())
}

func (o *Op) executeError(err error) error {
	return status.Place(err, status.ErrRuntimeFail, o.name, StageExecute.String(), "")
}

func (o *Op) checkReady(c *atbctx.Context) error {
	if !o.ready || o.run == nil {
		return status.Errorf(status.ErrInvalidParam, "want a successful setup first")
	}
	if o.c != c {
		return status.Errorf(status.ErrInvalidContextAddr, "the context is another than setup's")
	}
	if streams := o.run.Plan().Graph.Streams; streams > c.Streams() {
		return c.NoStream("SetStream id", streams-1)
	}
	if o.fixedWords(); !o.run.Planned(o.words) {
		return status.Errorf(status.ErrInvalidParam, "streams or parameters changed since setup: set up again")
	}
	return nil
}

// checkExecute makes the checks of Execute, in ATB's order.
func (o *Op) checkExecute(pack *VariantPack, workspace *device.Buffer, c *atbctx.Context) error {
	if err := o.checkReady(c); err != nil {
		return err
	}
	if err := o.checkWorkspace(workspace); err != nil {
		return err
	}
	if len(pack.In) == 0 && len(pack.Out) == 0 {
		pack.In, pack.Out = o.in, o.out
	}
	if len(pack.In) != len(o.in) || len(pack.Out) != len(o.out) {
		return status.Errorf(status.ErrInvalidTensorNum, "want %d inputs and %d outputs, got %d and %d", len(o.in), len(o.out), len(pack.In), len(pack.Out)).Or(status.ErrInvalidParam)
	}
	for i := range pack.In {
		if err := checkTensor(&pack.In[i], &o.in[i], &o.sig.In[i], o.inBytes[i]); err != nil {
			return err.On(portName("input", i, o.sig.In))
		}
	}
	for i := range pack.Out {
		if err := checkTensor(&pack.Out[i], &o.out[i], &o.sig.Out[i], o.outBytes[i]); err != nil {
			return err.On(portName("output", i, o.sig.Out))
		}
	}
	return o.readValues(pack.In)
}

// readValues reads the host values of a launch. They may differ from Setup's as
// long as the plan is the same.
func (o *Op) readValues(in []device.Tensor) error {
	if len(o.hostPorts) == 0 {
		return nil
	}
	changed := o.values.read(o.hostPorts, in)
	if e := o.values.err; e != nil {
		o.values.forget()
		return e.On(portName("input", o.values.errAt, o.sig.In))
	}
	ok, err := o.valuesFit(changed)
	if err == nil && !ok {
		err = status.Errorf(status.ErrInvalidParam, "the host values ask for another plan than setup's: set up again")
	}
	if err != nil {
		o.values.forget()
	}
	return err
}

func (o *Op) checkWorkspace(w *device.Buffer) error {
	if o.size == 0 {
		*w = device.Buffer{}
		return nil
	}
	if w.IsNil() {
		return status.Errorf(status.ErrInvalidWorkspaceAddr, "want a workspace of %d bytes, got none", o.size)
	}
	if w.Size() < o.size {
		return status.Errorf(status.ErrInvalidWorkspaceSize, "want a workspace of %d bytes, got %d", o.size, w.Size())
	}
	if !w.Live() {
		return status.Errorf(status.ErrInvalidWorkspaceAddr, "the workspace was freed")
	}
	if !w.Aligned(kernelgraph.ScratchAlign) {
		return status.Errorf(status.ErrInvalidWorkspaceAddr, "want a workspace at a multiple of %d bytes, got offset %d", kernelgraph.ScratchAlign, w.Offset())
	}
	*w = w.At(0, o.size)
	return nil
}

// checkTensor compares a tensor with Setup's, of `want` bytes, and looks at its
// memory.
func checkTensor(t, setup *device.Tensor, p *Port, want int64) *status.OpError {
	if !t.Desc.Same(&setup.Desc) {
		return status.Errorf(status.ErrInvalidTensorSize, "want setup's %s, got %s", setup.Desc, t.Desc).Or(status.ErrInvalidParam)
	}
	if p.Optional && t.Desc.Empty() {
		return nil
	}
	if t.Data.IsNil() {
		if (p.Host || p.either) && t.Host != nil {
			return nil
		}
		if t.Host != nil {
			return status.Errorf(status.ErrInvalidTensorAddr, "want memory on the device, got a host tensor: kernels read this operand; make it with FromSlice or NewTensor instead of Host")
		}
		return status.Errorf(status.ErrInvalidTensorAddr, "want memory on the device, got a tensor without data: make it with NewTensor or FromSlice")
	}
	if !t.Data.Live() {
		return status.Errorf(status.ErrInvalidTensorAddr, "its memory was freed")
	}
	if t.Data.Size() != want {
		return status.Errorf(status.ErrInvalidTensorSize, "want %d bytes for %s, got %d", want, t.Desc, t.Data.Size()).Or(status.ErrInvalidParam)
	}
	if p.Host && t.Host == nil {
		return status.Errorf(status.ErrInvalidTensorAddr, "want host data: its values are read on the host")
	}
	return nil
}
