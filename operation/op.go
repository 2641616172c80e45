package operation

import (
	"reflect"
	"sync/atomic"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/runner"
	"goatb/status"
	"goatb/tensor"
)

// Operation is what graphs are made of. *Op implements it; a user's own type
// that does can be a node of a graph too: the graph calls its Setup and Execute
// with the node's tensors and counts its workspace as scratch of its stream.
type Operation interface {
	// Name returns the operation's name; it never changes.
	Name() string
	// InputNum and OutputNum return the number of operands.
	InputNum() int
	OutputNum() int
	// InferShape returns the output descriptors for input descriptors.
	InferShape(in []tensor.Desc) ([]tensor.Desc, error)
	// Setup plans the operation and returns the bytes of workspace it needs.
	// It reads descriptors and host data and does no device work.
	Setup(pack VariantPack, c *atbctx.Context) (workspaceSize int64, err error)
	// Execute enqueues the operation and does not wait for the device.
	Execute(pack VariantPack, workspace device.Buffer, c *atbctx.Context) error
	// Close gives the operation's resources back.
	Close() error
}

// VariantPack holds the tensors of one call, in the order of the signature. An
// absent optional tensor is a zero Tensor.
type VariantPack struct {
	In, Out []device.Tensor
}

// Op is an operation made from a Spec.
//
// An Op is used by one goroutine at a time; a call that overlaps another on the
// same Op returns ErrInvalidParam. It plans for one context at a time: a Setup
// with another context moves it there. Its results belong to the caller; the
// workspace may be used again once the work enqueued with it is done, or at
// once by operations on the same stream.
type Op struct {
	spec    Spec
	sig     Signature
	name    string
	busy    atomic.Bool
	closed  bool
	version atomic.Uint64
	// owner is the graph operation that this one is a node of.
	owner *Op
	// stream is the stream id; unset means the owner's, or 0.
	stream    int
	streamSet bool

	c       *atbctx.Context
	profile *Profile
	// checks is the checker under profile checks.profile, nil before its use.
	checks *checker
	run    *runner.Runner
	low    *lowering
	ready  bool
	size   int64

	words []uint64
	// outcome and condWords are the conditions of the tree at this Setup.
	outcome   map[*If]bool
	condWords []uint64
	values    hostValues
	in, out   []device.Tensor
	infer     inferCache
}

// New makes an operation from its parameters. Errors: ErrInvalidParam for a nil
// spec and for parameters that Validate refuses.
func New(s Spec) (*Op, error) {
	if isNil(s) {
		return nil, status.Errorf(status.ErrInvalidParam, "new operation: want parameters, got nil")
	}
	sig := s.Signature()
	if err := s.Validate(); err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, sig.Name, "create", "")
	}
	o := &Op{spec: s, sig: sig, name: sig.Name}
	o.version.Store(1)
	if g, ok := s.(*graph); ok {
		g.adopt(o)
	}
	return o, nil
}

func isNil(s Spec) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Name returns the operation's type, or a graph's own name.
func (o *Op) Name() string { return o.name }

// InputNum returns the number of inputs.
func (o *Op) InputNum() int { return len(o.sig.In) }

// OutputNum returns the number of outputs.
func (o *Op) OutputNum() int { return len(o.sig.Out) }

// Signature describes the operands.
func (o *Op) Signature() Signature { return o.sig }

// Params returns the operation's parameters.
func (o *Op) Params() Spec { return o.spec }

// Update replaces the parameters; the next Setup plans anew, also of a graph
// that this operation is a node of. Equal parameters change nothing. Errors:
// ErrInvalidParam for parameters of another type, of another arity, or that
// Validate refuses; the old ones stay then.
func (o *Op) Update(s Spec) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.busy.Store(false)
	if isNil(s) || reflect.TypeOf(s) != reflect.TypeOf(o.spec) {
		return status.Place(status.Errorf(status.ErrInvalidParam, "want parameters of type %T, got %T", o.spec, s), status.ErrInvalidParam, o.name, "update", "")
	}
	if err := s.Validate(); err != nil {
		return status.Place(err, status.ErrInvalidParam, o.name, "update", "")
	}
	if reflect.DeepEqual(s, o.spec) {
		return nil
	}
	sig := s.Signature()
	if o.owner != nil && (len(sig.In) != len(o.sig.In) || len(sig.Out) != len(o.sig.Out)) {
		err := status.Errorf(status.ErrInvalidParam, "a node of a graph wants %d inputs and %d outputs, the new parameters have %d and %d", len(o.sig.In), len(o.sig.Out), len(sig.In), len(sig.Out))
		return status.Place(err, status.ErrInvalidParam, o.name, "update", "")
	}
	o.spec, o.sig, o.checks = s, sig, nil
	o.bump()
	return nil
}

// bump makes every plan that holds this operation out of date.
func (o *Op) bump() {
	for ; o != nil; o = o.owner {
		o.version.Add(1)
	}
}

// SetStream puts the operation on a stream of its context, by id. Nodes of a
// graph that were given no id of their own follow the graph.
func (o *Op) SetStream(id int) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.busy.Store(false)
	if id < 0 {
		return status.Place(status.Errorf(status.ErrInvalidStream, "want a stream id of at least 0, got %d", id), status.ErrInvalidStream, o.name, "set stream", "")
	}
	if !o.streamSet || o.stream != id {
		o.stream, o.streamSet = id, true
		o.bump()
	}
	return nil
}

// Stream returns the stream id: the operation's own, else its graph's, else 0.
func (o *Op) Stream() int {
	for ; o != nil; o = o.owner {
		if o.streamSet {
			return o.stream
		}
	}
	return 0
}

// enter claims the operation for one call.
func (o *Op) enter() error {
	if o == nil {
		return status.Errorf(status.ErrInvalidOperationAddr, "the operation is nil")
	}
	if !o.busy.CompareAndSwap(false, true) {
		return status.Errorf(status.ErrInvalidParam, "%s: the operation is in use by another goroutine", o.name)
	}
	if o.closed {
		o.busy.Store(false)
		return status.Errorf(status.ErrInvalidOperationAddr, "%s: the operation is closed", o.name)
	}
	return nil
}

// InferShape returns the output descriptors for input descriptors, under the
// profile of the context of the last Setup, native before that.
func (o *Op) InferShape(in []tensor.Desc) ([]tensor.Desc, error) {
	p := Native()
	if o != nil && o.profile != nil {
		p = o.profile
	}
	return o.InferShapeUnder(p, in)
}

// InferShapeUnder is InferShape under a given profile.
func (o *Op) InferShapeUnder(p *Profile, in []tensor.Desc) ([]tensor.Desc, error) {
	if err := o.enter(); err != nil {
		return nil, err
	}
	defer o.busy.Store(false)
	out, err := o.inferUnder(p, in)
	return out, status.Place(err, status.ErrInvalidParam, o.name, StageInfer.String(), "")
}

// checker returns the operation's checker under a profile; the last one is kept.
func (o *Op) checker(p *Profile) (*checker, error) {
	if o.checks != nil && o.checks.profile == p {
		return o.checks, nil
	}
	c, err := newChecker(&o.sig, p)
	if err == nil {
		o.checks = c
	}
	return c, err
}

func (o *Op) inferUnder(p *Profile, in []tensor.Desc) ([]tensor.Desc, error) {
	c, err := o.checker(p)
	if err != nil {
		return nil, err
	}
	return c.inferShape(o.spec, in)
}

// Close gives the runner back to its context's pool, and a graph's nodes with
// it. The operation may be closed after its context. Closing twice is legal; a
// node of a graph is closed by its graph.
func (o *Op) Close() error {
	if o == nil {
		return nil
	}
	if !o.busy.CompareAndSwap(false, true) {
		return status.Errorf(status.ErrInvalidParam, "%s: the operation is in use by another goroutine", o.name)
	}
	defer o.busy.Store(false)
	if o.closed {
		return nil
	}
	o.closed, o.ready = true, false
	err := o.detach()
	if g, ok := o.spec.(*graph); ok {
		if gerr := g.close(); err == nil {
			err = gerr
		}
	}
	o.in, o.out, o.low = nil, nil, nil
	return err
}

// detach gives the runner back to the pool of the context it came from.
func (o *Op) detach() error {
	if o.run == nil {
		return nil
	}
	r := o.run
	o.run, o.ready = nil, false
	return o.c.Pool().Put(o.poolType(), r)
}

func (o *Op) poolType() string { return o.sig.Name }
