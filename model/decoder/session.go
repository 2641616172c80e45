package decoder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"goatb/atb"
	"goatb/device"
	"goatb/status"
	"goatb/tensor"
)

// Load is what a step computes.
type Load struct {
	// Batch is the number of sequences, Context the number of positions that each
	// has before the first step.
	Batch, Context int
	// Prompt is the number of new tokens of each sequence in a step: 0 or 1
	// decodes, and a longer one is a prompt of its own, without a context.
	Prompt int
	// Steps is the number of steps that the caches have room for.
	Steps int
	// Whole makes one operation of a step, or as few as their inputs allow, instead
	// of one for the embedding, each layer and the head. A policy that captures
	// graphs gets that anyway.
	Whole bool
	// FixedLengths keeps the lengths at Context+1 in every step.
	FixedLengths bool
}

// blockSize is the number of positions in a block of the paged cache.
const blockSize = 128

// maskSide is the side of a compressed mask, which stands for one of any size.
const maskSide = 512

// Validate checks that the load can be held.
func (l *Load) Validate() error {
	if err := status.Given("validate", "load", l); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name        string
		v, from, to int
	}{{"batch", l.Batch, 1, 1 << 16}, {"context", l.Context, 0, 1 << 24}, {"prompt", l.Prompt, 0, 1 << 24}, {"steps", l.Steps, 1, 1 << 24}} {
		if f.v < f.from || f.v > f.to {
			return fmt.Errorf("load: %s: want %d to %d, got %d", f.name, f.from, f.to, f.v)
		}
	}
	if l.prefill() && l.Context > 0 {
		return fmt.Errorf("load: a prompt starts a sequence: want a context of 0, got %d", l.Context)
	}
	if l.positions()*float64(l.Batch) > math.MaxInt32 {
		return fmt.Errorf("load: want at most %d positions in the cache, got %.4g", math.MaxInt32, l.positions()*float64(l.Batch))
	}
	return nil
}

func (l *Load) prefill() bool { return l.Prompt > 1 }

// prompt is the length of the prompts, 0 when the step decodes.
func (l *Load) prompt() int {
	if l.prefill() {
		return l.Prompt
	}
	return 0
}

// rows is the number of tokens of a step.
func (l *Load) rows() int { return l.Batch * max(l.Prompt, 1) }

// columns is the number of cache blocks of a sequence.
func (l *Load) columns() int {
	last := l.Context + l.Steps
	if l.prefill() {
		last = l.Prompt
	}
	return (last + blockSize - 1) / blockSize
}

func (l *Load) positions() float64 { return float64(l.columns()) * blockSize }

// Session runs steps of a model on a context's device. It belongs to one
// goroutine.
type Session struct {
	shape Shape
	load  Load
	c     *atb.Context
	now   func() time.Time
	// Observe, when not nil, is told what the host did.
	Observe func(Span)

	calls    []call
	staging  device.Buffer
	onDevice device.Buffer
	// positions, slots and contexts are the parts of staging that steps change.
	positions, slots []int32
	contexts         []int32
	chosen           device.Buffer // host memory for the tokens that come back
	logits           atb.Tensor
	own              []device.Buffer
	step             int
}

// call is one operation of a step.
type call struct {
	op   *atb.Op
	pack atb.VariantPack
}

// Span is a piece of the host's work in a step.
type Span struct {
	// Stage is "setup", "execute" or "wait", Op the operation's name.
	Stage, Op  string
	Start, End time.Time
}

// NewSession makes the operations and memory of a model with weights of type t.
// Errors: a shape or load that cannot be, and those of the device.
func NewSession(c *atb.Context, s Shape, l Load, t atb.DType) (*Session, error) {
	if c == nil {
		return nil, fmt.Errorf("session: want a context")
	}
	if err := errors.Join(s.Validate(), l.Validate()); err != nil {
		return nil, err
	}
	l.Whole = l.Whole || c.Captures()
	x := &Session{shape: s, load: l, c: c, now: device.Clock(device.HostOf(c.Device()))}
	if err := x.open(t); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

func (s *Session) open(t atb.DType) error {
	m := maker{s: s, t: t}
	m.indices()
	m.tensors()
	if s.load.Whole {
		m.pieces()
	} else {
		m.operations()
	}
	return m.err
}

// Step runs one step: it enqueues it and waits for the device.
func (s *Session) Step(ctx context.Context) error {
	if err := status.Given("step", "session", s, "ctx", ctx); err != nil {
		return err
	}
	if err := s.Enqueue(); err != nil {
		return err
	}
	start := s.now()
	if err := s.c.Synchronize(ctx); err != nil {
		return err
	}
	s.tell("wait", "", start)
	return nil
}

// Enqueue sets every operation of a step up and enqueues all of them on the
// context's first stream, between the copies of indices and of chosen tokens. The
// step before must be done: its indices are overwritten.
func (s *Session) Enqueue() error {
	if s == nil || s.c == nil {
		return fmt.Errorf("step: the session is nil or zero: make one with NewSession")
	}
	if s.step == s.load.Steps {
		return fmt.Errorf("step: the caches have room for %d steps", s.load.Steps)
	}
	s.place()
	size := int64(0)
	for i := range s.calls {
		n, err := s.setup(&s.calls[i])
		if err != nil {
			return err
		}
		size = max(size, n)
	}
	ws, err := s.c.Workspace(size)
	if err != nil {
		return err
	}
	stream, err := s.c.Stream(0)
	if err != nil {
		return err
	}
	if err := stream.Copy(s.onDevice, s.staging); err != nil {
		return err
	}
	for i := range s.calls {
		if err := s.execute(&s.calls[i], ws); err != nil {
			return err
		}
	}
	if err := stream.Copy(s.chosen, s.logits.Data.At(0, s.chosen.Size())); err != nil {
		return err
	}
	s.step++
	return nil
}

func (s *Session) setup(c *call) (int64, error) {
	start := s.now()
	n, err := c.op.Setup(c.pack, s.c)
	s.tell("setup", c.op.Name(), start)
	return n, err
}

func (s *Session) execute(c *call, ws atb.Buffer) error {
	start := s.now()
	err := c.op.Execute(c.pack, ws, s.c)
	s.tell("execute", c.op.Name(), start)
	return err
}

func (s *Session) tell(stage, op string, start time.Time) {
	if s.Observe != nil {
		s.Observe(Span{Stage: stage, Op: op, Start: start, End: s.now()})
	}
}

// place writes the indices of the step.
func (s *Session) place() {
	l := &s.load
	at := l.Context
	if !l.FixedLengths {
		at += s.step
	}
	if l.prefill() {
		at = 0
	}
	each := max(l.Prompt, 1)
	for seq := range l.Batch {
		s.contexts[seq] = int32(at + each)
		for i := range each {
			pos := at + i
			s.positions[seq*each+i] = int32(pos)
			s.slots[seq*each+i] = int32((seq*l.columns()+pos/blockSize)*blockSize + pos%blockSize)
		}
	}
}

// Rewind starts again with the first step's lengths.
func (s *Session) Rewind() {
	if s != nil {
		s.step = 0
	}
}

// Operations lists the operations of a step, in order.
func (s *Session) Operations() []*atb.Op {
	if s == nil {
		return nil
	}
	ops := make([]*atb.Op, len(s.calls))
	for i := range s.calls {
		ops[i] = s.calls[i].op
	}
	return ops
}

// Layer returns the operation that computes the first layer, nil of a session that
// NewSession has not made.
func (s *Session) Layer() *atb.Op {
	if s == nil || len(s.calls) == 0 {
		return nil
	}
	if s.load.Whole {
		return s.calls[0].op
	}
	return s.calls[1].op
}

// Close closes the operations and frees the memory. Closing twice is legal, also
// after the device.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, c := range s.calls {
		errs = append(errs, c.op.Close())
	}
	for _, b := range s.own {
		if b.Live() {
			errs = append(errs, s.c.Device().Free(b))
		}
	}
	s.own = nil
	return errors.Join(errs...)
}

// maker makes the memory and operations of a session and keeps the first error.
type maker struct {
	s   *Session
	t   atb.DType
	err error
	// byName holds the tensors that operations have in common, by the names of
	// their inputs, y the other end of a layer, own the tensors of each layer.
	byName map[string]atb.Tensor
	y      atb.Tensor
	own    [][]atb.Tensor
}

// reserve takes memory and remembers it.
func (m *maker) reserve(take func(int64) (device.Buffer, error), size int64) device.Buffer {
	if m.err != nil {
		return device.Buffer{}
	}
	b, err := take(size)
	if m.err = err; err == nil {
		m.s.own = append(m.s.own, b)
	}
	return b
}

func (m *maker) tensor(t atb.DType, dims ...int64) atb.Tensor {
	d := tensor.Of(t, dims...)
	if err := tensor.CheckDesc(&d); err != nil && m.err == nil {
		m.err = err
	}
	b := m.reserve(m.s.c.Alloc, d.Bytes())
	return atb.Tensor{Desc: d, Data: b}
}

// add adds an operation to the step.
func (m *maker) add(op *atb.Op, err error, in, out []atb.Tensor) {
	if m.err != nil || err != nil {
		m.err = errors.Join(m.err, err)
		return
	}
	m.s.calls = append(m.s.calls, call{op, atb.VariantPack{In: in, Out: out}})
}

// named returns the tensors of inputs that operations have in common.
func (m *maker) named(names ...string) []atb.Tensor {
	list := make([]atb.Tensor, len(names))
	for i, n := range names {
		list[i] = m.byName[n]
	}
	return list
}

// indices makes the staging memory, its place on the device, and what never
// changes in it.
func (m *maker) indices() {
	s, l := m.s, &m.s.load
	m.byName = map[string]atb.Tensor{}
	rows, columns := int64(l.rows()), int64(l.columns())
	total := 4 * (4*rows + int64(l.Batch) + int64(l.Batch)*columns)
	s.staging = m.reserve(s.c.Device().AllocHost, total)
	s.onDevice = m.reserve(s.c.Device().Reserve, total)
	if m.err != nil {
		return
	}
	at := int64(0)
	cut := func(name string, dims ...int64) []int32 {
		d := tensor.Of(tensor.Int32, dims...)
		host := device.View[int32](s.staging.At(at, d.Bytes()).Bytes())
		m.byName[name] = atb.Tensor{Desc: d, Data: s.onDevice.At(at, d.Bytes())}
		at += d.Bytes()
		return host
	}
	cut("ids", rows)
	s.positions, s.slots = cut("positions", rows), cut("slots", rows)
	ones, last, tables := cut("lengths", rows), cut("last", int64(l.Batch)), cut("tables", int64(l.Batch), columns)
	for i := range ones {
		ones[i] = 1
	}
	for i := range last {
		last[i] = int32((i+1)*max(l.Prompt, 1) - 1)
	}
	for i := range tables {
		tables[i] = int32(i)
	}
	lengths := m.byName["lengths"]
	lengths.Host = device.BytesOf(ones)
	m.byName["lengths"] = lengths
	s.contexts = make([]int32, l.Batch)
	m.byName["contexts"] = atb.Host(s.contexts)
}

// tensors makes all other memory.
func (m *maker) tensors() {
	s, l := &m.s.shape, &m.s.load
	rows, d, hidden, batch := int64(l.rows()), int64(s.ropeDim()), int64(s.Hidden), int64(l.Batch)
	positions, head := int64(l.positions()), int64(s.HeadDim)
	if s.Latent.Rank > 0 {
		head = int64(s.Latent.Rank)
	}
	for _, x := range [...]struct {
		name string
		dims []int64
	}{
		{"table", []int64{int64(s.Vocab), hidden}}, {"cosines", []int64{positions, d}}, {"sines", []int64{positions, d}},
		{"gamma", []int64{hidden}}, {"head_gamma", []int64{head}}, {"mask", []int64{maskSide, maskSide}},
		{"logits", []int64{batch, int64(s.Vocab)}}, {"x", []int64{rows, hidden}}, {"cos", []int64{rows, d}}, {"sin", []int64{rows, d}},
	} {
		m.byName[x.name] = m.tensor(m.t, x.dims...)
	}
	m.y = m.tensor(m.t, rows, hidden)
	m.byName["classifier"] = m.byName["table"]
	if !s.Tied {
		m.byName["classifier"] = m.tensor(m.t, int64(s.Vocab), hidden)
	}
	for i := range s.Layers {
		m.own = append(m.own, m.layerTensors(i))
	}
	m.s.logits = m.byName["logits"]
	m.s.chosen = m.reserve(m.s.c.Device().AllocHost, min(4*batch, m.s.logits.Desc.Bytes()))
}

// layerTensors makes the weights and caches of a layer.
func (m *maker) layerTensors(layer int) []atb.Tensor {
	s, l := &m.s.shape, &m.s.load
	var own []atb.Tensor
	for _, w := range s.weights(layer, l.rows()) {
		dims := []int64{w.rows, w.cols}
		if w.heads > 0 {
			dims = []int64{w.heads, w.rows, w.cols}
		}
		own = append(own, m.tensor(m.t, dims...))
	}
	for _, c := range s.caches() {
		own = append(own, m.tensor(m.t, int64(l.Batch)*int64(l.columns()), blockSize, c.heads, c.width))
	}
	return own
}

// operations makes one operation for the embedding, each layer and the head.
func (m *maker) operations() {
	s, l := &m.s.shape, &m.s.load
	x, y := m.byName["x"], m.y
	op, err := embedGraph()
	m.add(op, err, m.named(embedInputs...), m.named("x", "cos", "sin"))
	for i := range s.Layers {
		op, err := s.layerGraph(i, l.rows(), l.prompt())
		m.add(op, err, slices.Concat([]atb.Tensor{x}, m.named(shared...), m.own[i]), []atb.Tensor{y})
		x, y = y, x
	}
	op, err = s.headGraph()
	m.add(op, err, append([]atb.Tensor{x}, m.named(headInputs...)...), m.named("logits"))
}

// pieces makes as few operations as there can be.
func (m *maker) pieces() {
	x, y := m.byName["x"], m.y
	for _, p := range m.s.shape.pieces(m.s.load.rows(), m.s.load.prompt()) {
		m.byName["x"], m.byName["y"] = x, y
		var own []atb.Tensor
		for l := p.from; l < p.to; l++ {
			own = append(own, m.own[l]...)
		}
		names := p.inputs()
		op, err := p.graph()
		m.add(op, err, append(m.named(names[:len(names)-len(own)]...), own...), m.named(p.outputs()...))
		x, y = y, x
	}
}
