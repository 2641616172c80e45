package operation

import (
	"errors"
	"reflect"
	"sync/atomic"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/runner"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink"
)

// Operation is what graphs are made of. *Op implements it; a user's own type
// that does can be a node of a graph too: the graph calls its Setup and Execute
// with the node's tensors and counts its workspace as scratch of its stream. A
// panic in one of its methods is an error of the graph's call.
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

// Streamer is implemented by users' own operations that can run on several
// streams. Before its Setup a graph calls OnStream with the id of the stream that
// it runs on; the result is the id of the stream that the operation will enqueue
// its work on. Without it that is the graph's.
type Streamer interface {
	OnStream(graph int) (stream int)
}

// VariantPack holds the tensors of one call, in the order of the signature. An
// absent optional tensor is a zero Tensor.
type VariantPack struct {
	In, Out []device.Tensor
}

// Op is an operation made from a Spec.
//
// An Op is used by one goroutine at a time; a call that overlaps another on the
// same Op, or on the graph that it is a node of, returns ErrInvalidParam. It plans for one context at a time: a Setup
// with another context moves it there. Its results belong to the caller; the
// workspace may be used again once the work enqueued with it is done, or at
// once by operations on the same stream.
type Op struct {
	spec    Spec
	sig     Signature
	name    string
	busy    atomic.Bool
	closed  atomic.Bool
	version atomic.Uint64
	// owner is the graph operation that this one is a node of.
	owner *Op
	// stream is the stream id; unset means the owner's, or 0.
	stream    int
	streamSet bool
	// option is sink.OptionName.
	option sink.Setting

	// hostPorts are the inputs whose values are read on the host.
	hostPorts []int

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
	// in and out are the tensors of the last Setup, inBytes and outBytes their
	// sizes.
	in, out []device.Tensor
	// again says that the runner is bound to in and out.
	again             bool
	inBytes, outBytes []int64
	infer             inferCache
}

// New makes an operation from a copy of its parameters, also of those that s points
// to: what the caller changes afterwards does not reach the operation, Update does.
// Only a user's own type whose methods want a pointer stays the caller's, who must
// not change it. Errors: ErrInvalidParam for a nil spec, for parameters that Validate refuses, and for those of a graph,
// which NewGraph makes.
func New(s Spec) (*Op, error) {
	if err := status.Given("new operation", "parameters", s); err != nil {
		return nil, err
	}
	if g, ok := s.(*graph); ok {
		return nil, status.Place(errGraphParams(), status.ErrInvalidParam, g.p.Name, "create", "")
	}
	return newOp(cloneSpec(s))
}

func errGraphParams() error {
	return status.Errorf(status.ErrInvalidParam, "a graph's nodes belong to it and its parameters are not taken: make another graph with BuildGraph or NewGraph, or update the operations of its nodes")
}

func newOp(s Spec) (*Op, error) {
	o := &Op{spec: s}
	o.refresh()
	o.name = o.sig.Name
	if err := s.Validate(); err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, o.name, "create", "")
	}
	o.version.Store(1)
	return o, nil
}

// refresh derives what depends on the parameters.
func (o *Op) refresh() {
	o.sig, o.checks = o.spec.Signature(), nil
	o.hostPorts = o.hostPorts[:0]
	for i := range o.sig.In {
		if o.sig.In[i].Host {
			o.hostPorts = append(o.hostPorts, i)
		}
	}
}

// Name returns the operation's type, or a graph's own name; "" of a nil
// operation.
func (o *Op) Name() string {
	if o == nil {
		return ""
	}
	return o.name
}

// InputNum returns the number of inputs.
func (o *Op) InputNum() int { return len(o.Signature().In) }

// OutputNum returns the number of outputs.
func (o *Op) OutputNum() int { return len(o.Signature().Out) }

// Signature describes the operands; a nil operation has none.
func (o *Op) Signature() Signature {
	if o == nil {
		return Signature{}
	}
	return o.sig
}

// Params returns a copy of the operation's parameters, nil of a nil operation.
func (o *Op) Params() Spec {
	if o == nil || o.spec == nil {
		return nil
	}
	return cloneSpec(o.spec)
}

// Update replaces the parameters; the next Setup plans anew, also of a graph
// that this operation is a node of. Equal parameters change nothing. Errors:
// ErrInvalidParam for parameters of another type or of a graph, of another
// arity where the operation is a node of a graph, or that Validate refuses; the
// old ones stay then.
func (o *Op) Update(s Spec) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	return status.Place(o.update(s), status.ErrInvalidParam, o.name, "update", "")
}

func (o *Op) update(s Spec) error {
	if status.IsNil(s) {
		return status.Errorf(status.ErrInvalidParam, "want parameters of type %s, got nil", kindOf(o.spec))
	}
	_, graphs := s.(*graph)
	if _, is := o.spec.(*graph); is || graphs {
		return errGraphParams()
	}
	s = cloneSpec(s)
	if reflect.TypeOf(s) != reflect.TypeOf(o.spec) {
		return status.Errorf(status.ErrInvalidParam, "want parameters of type %s, got %s", kindOf(o.spec), kindOf(s))
	}
	if err := s.Validate(); err != nil {
		return err
	}
	if equalSpecs(s, o.spec) {
		return nil
	}
	sig := s.Signature()
	if o.owner != nil && (len(sig.In) != len(o.sig.In) || len(sig.Out) != len(o.sig.Out)) {
		return status.Errorf(status.ErrInvalidParam, "a node of a graph wants %d inputs and %d outputs, the new parameters have %d and %d", len(o.sig.In), len(o.sig.Out), len(sig.In), len(sig.Out))
	}
	o.spec = s
	o.bump()
	return nil
}

// bump makes every plan that holds this operation out of date, and lets the
// graphs around it see its new signature.
func (o *Op) bump() {
	for ; o != nil; o = o.owner {
		o.refresh()
		o.version.Add(1)
	}
}

// SetStream puts the operation on a stream of its context, by id. Nodes of a
// graph that were given no id of their own follow the graph. The streams of one
// launch are joined: they begin behind the operation's stream, and what is
// enqueued on that stream later runs after all of them.
func (o *Op) SetStream(id int) error {
	if err := o.enter(); err != nil {
		return err
	}
	defer o.leave()
	if err := checkStream(id); err != nil {
		return status.Place(err, status.ErrInvalidStream, o.name, "set stream", "")
	}
	if !o.streamSet || o.stream != id {
		o.stream, o.streamSet = id, true
		o.bump()
	}
	return nil
}

// checkStream refuses ids that no context has.
func checkStream(id int) error {
	if id < 0 || id >= atbctx.MaxStreams {
		return status.Errorf(status.ErrInvalidStream, "want a stream id of 0 to %d, got %d", atbctx.MaxStreams-1, id)
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

// enter claims the operation, and the graphs around it, for one call.
func (o *Op) enter() error {
	if o == nil {
		return status.Errorf(status.ErrInvalidOperationAddr, "the operation is nil: make one with New or NewGraph")
	}
	if o.spec == nil {
		return errZeroOp()
	}
	for p := o; p != nil; p = p.owner {
		if p.busy.CompareAndSwap(false, true) {
			continue
		}
		for q := o; q != p; q = q.owner {
			q.busy.Store(false)
		}
		return o.errBusy()
	}
	if o.closed.Load() {
		o.leave()
		return &status.OpError{Code: status.ErrInvalidOperationAddr, Op: o.name, Err: errors.New("the operation is closed")}
	}
	return nil
}

func errZeroOp() error {
	return status.Errorf(status.ErrInvalidOperationAddr, "the operation is a zero Op: make one with New or NewGraph")
}

func (o *Op) errBusy() error {
	return &status.OpError{Code: status.ErrInvalidParam, Op: o.name, Err: errors.New("the operation is in use by another goroutine")}
}

// leave ends the claim of enter.
func (o *Op) leave() {
	for ; o != nil; o = o.owner {
		o.busy.Store(false)
	}
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
	defer o.leave()
	if err := status.Given("infer shape", "profile", p); err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, o.name, "", "")
	}
	out, err := o.inferUnder(p, in, nil)
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

// inferUnder infers under a profile, inside a Setup with what that knows.
func (o *Op) inferUnder(p *Profile, in []tensor.Desc, low *lowering) ([]tensor.Desc, error) {
	c, err := o.checker(p)
	if err != nil {
		return nil, err
	}
	return c.infer(o.spec, in, low)
}

// Close gives the runner back to its context's pool, and a graph's nodes with
// it. The operation may be closed after its context. Closing twice is legal; a
// node of a graph is closed by its graph.
func (o *Op) Close() error {
	if o == nil || o.spec == nil {
		return nil
	}
	if !o.busy.CompareAndSwap(false, true) {
		return o.errBusy()
	}
	defer o.busy.Store(false)
	if o.closed.Swap(true) {
		return nil
	}
	o.ready = false
	err := o.detach()
	if g, ok := o.spec.(*graph); ok {
		if gerr := g.close(); err == nil {
			err = gerr
		}
	}
	o.in, o.out, o.low = nil, nil, nil
	return err
}

// detach gives the runner back to the pool of the context it came from, or
// closes it where no other operation could use it.
func (o *Op) detach() error {
	if o.run == nil {
		return nil
	}
	r := o.run
	o.run, o.ready = nil, false
	if !o.pooled() || r.Plan() == nil || r.Plan().Kernels() == 0 {
		return r.Close()
	}
	return o.c.Pool().Put(o.sig.Name, r)
}

// pooled reports whether runners may pass from one operation of the type to
// another: not those of graphs and conditions, which hold other operations.
func (o *Op) pooled() bool {
	_, tree := o.spec.(conditional)
	return !tree
}
