package llama

import (
	"errors"
	"fmt"
	"slices"

	"goatb/atb"
	"goatb/device"
	"goatb/tensor"
)

// Shape is what the kernels and the memory of a Forward depend on.
type Shape struct {
	// Rows is the number of rows, Want that of those whose logits are wanted.
	Rows int `json:"rows"`
	Want int `json:"want"`
	// Sequences is the number of runs of rows that follow each other in one sequence:
	// 1 for a prompt, Rows for a step of decoding.
	Sequences int `json:"sequences"`
}

func (s Shape) kind() kind {
	if s.Sequences < s.Rows {
		return prompt
	}
	return single
}

// maxBatches is the number of shapes whose memory a Session keeps. Prompts of
// many lengths would fill the device otherwise.
const maxBatches = 16

// batch holds the memory and the tensor packs of Forwards of one shape, so that
// a steady step makes nothing anew.
type batch struct {
	Shape
	memory memory
	used   uint64 // the session's clock at the last use
	// staging is host memory that one copy brings to onDevice; the slices are
	// windows of it.
	staging, onDevice                   device.Buffer
	ids, positions, slots, want, tables []int32
	// contexts and queries are read on the host: the positions and the rows of each
	// run of rows.
	contexts, queries []int32
	// packs has a pack for each stage.
	packs  []atb.VariantPack
	logits atb.Tensor
	// logitsHost receives the logits, floats is them widened.
	logitsHost device.Buffer
	floats     []float32
}

// batch returns the batch of a shape. The device must be done with all others:
// the one that was used least recently makes room for a new one.
func (s *Session) batch(shape Shape) (*batch, error) {
	s.clock++
	b := s.last // never the one that makes room
	if b == nil || b.Shape != shape {
		b = s.batches[shape]
	}
	if b != nil {
		if !b.staging.Live() {
			return nil, fmt.Errorf("forward: the device is closed")
		}
		b.used = s.clock
		return b, nil
	}
	if err := s.makeRoom(); err != nil {
		return nil, err
	}
	b = &batch{
		Shape: shape, memory: memory{c: s.c, dev: s.memory.dev}, used: s.clock,
		contexts: make([]int32, shape.Sequences), queries: make([]int32, shape.Sequences), floats: make([]float32, shape.Want*s.m.Config.Vocab),
	}
	if err := b.allocate(s); err != nil {
		return nil, errors.Join(err, b.memory.free())
	}
	s.batches[shape] = b
	return b, nil
}

// makeRoom frees the batch that was used least recently when there are as many
// as a Session keeps.
func (s *Session) makeRoom() error {
	if len(s.batches) < maxBatches {
		return nil
	}
	var oldest Shape
	least := s.clock
	for key, b := range s.batches {
		if b.used < least {
			oldest, least = key, b.used
		}
	}
	b := s.batches[oldest]
	delete(s.batches, oldest)
	return b.memory.free()
}

// indices are the tensors that a Forward's one copy fills.
type indices struct{ ids, positions, slots, lengths, want, tables atb.Tensor }

// allocate makes the batch's memory and packs.
func (b *batch) allocate(s *Session) error {
	ix, err := b.allocateIndices(s)
	if err != nil {
		return err
	}
	cfg, m, n := &s.m.Config, s.m, int64(b.Rows)
	var x, added, y, addedNext, cos, sin, logits atb.Tensor
	for _, t := range [...]struct {
		to    *atb.Tensor
		dtype atb.DType
		dims  [2]int64
	}{
		{&x, m.DType, [2]int64{n, int64(cfg.Dim)}}, {&added, m.DType, [2]int64{n, int64(cfg.Dim)}},
		{&y, m.DType, [2]int64{n, int64(cfg.Dim)}}, {&addedNext, m.DType, [2]int64{n, int64(cfg.Dim)}},
		{&cos, m.ropeType, [2]int64{n, int64(cfg.HeadDim())}}, {&sin, m.ropeType, [2]int64{n, int64(cfg.HeadDim())}},
		{&logits, m.DType, [2]int64{int64(b.Want), int64(cfg.Vocab)}},
	} {
		if s.opt.Whole && t.to != &logits {
			continue // the step's own graph plans it
		}
		if *t.to, err = b.memory.tensor(t.dtype, t.dims[:]...); err != nil {
			return err
		}
	}
	if b.logitsHost, err = b.memory.allocHost(logits.Data.Size()); err != nil {
		return err
	}
	embed := slices.Concat(m.embedding.tensors, []atb.Tensor{m.cos, m.sin, ix.ids, ix.positions})
	state := []atb.Tensor{ix.lengths, ix.slots, ix.tables, atb.Host(b.contexts)}
	if b.kind() == prompt {
		state = append(state, atb.Host(b.queries))
	}
	head := append([]atb.Tensor{ix.want, m.finalNorm}, m.classifier.tensors...)
	b.logits = logits
	if s.opt.Whole {
		in := slices.Concat(embed, state, head, []atb.Tensor{m.attnNorms, m.ffnNorms, s.kCaches, s.vCaches})
		for i := range m.layers {
			in = append(in, m.layers[i].inputs()...)
		}
		b.packs = []atb.VariantPack{{In: in, Out: []atb.Tensor{logits}}}
		return nil
	}
	b.packs = []atb.VariantPack{{In: embed, Out: []atb.Tensor{x, cos, sin}}}
	for i := range m.layers {
		in := []atb.Tensor{x, added}[:min(i+1, 2)]
		in = slices.Concat(in, []atb.Tensor{cos, sin}, state, s.weights(i))
		b.packs = append(b.packs, atb.VariantPack{In: in, Out: []atb.Tensor{y, addedNext}})
		x, y, added, addedNext = y, x, addedNext, added
	}
	b.packs = append(b.packs, atb.VariantPack{In: append([]atb.Tensor{x, added}, head...), Out: []atb.Tensor{logits}})
	return nil
}

// weights are the inputs of a layer that stay the same: its weights and cache.
func (s *Session) weights(i int) []atb.Tensor {
	l, c := &s.m.layers[i], &s.caches[i]
	return append([]atb.Tensor{l.attnNorm, l.ffnNorm, c.k, c.v}, l.inputs()...)
}

// inputs are the tensors of the matrices.
func (l *layerOnDevice) inputs() (in []atb.Tensor) {
	for i := range l.matrices {
		in = append(in, l.matrices[i].tensors...)
	}
	return in
}

// allocateIndices makes the staging memory, its place on the device and the
// windows of both. Every row is a sequence of length 1 to the rotary embedding.
func (b *batch) allocateIndices(s *Session) (ix indices, err error) {
	n, sequences, want := int64(b.Rows), int64(b.Sequences), int64(b.Want)
	total := 4 * (4*n + want + sequences*int64(s.blocks))
	if b.staging, err = b.memory.allocHost(total); err != nil {
		return ix, err
	}
	if b.onDevice, err = b.memory.alloc(total); err != nil {
		return ix, err
	}
	at := int64(0)
	cut := func(dims ...int64) ([]int32, atb.Tensor) {
		d := tensor.Of(tensor.Int32, dims...)
		host := device.View[int32](b.staging.At(at, d.Bytes()).Bytes())
		t := atb.Tensor{Desc: d, Data: b.onDevice.At(at, d.Bytes())}
		at += d.Bytes()
		return host, t
	}
	var ones []int32
	b.ids, ix.ids = cut(n)
	b.positions, ix.positions = cut(n)
	b.slots, ix.slots = cut(n)
	ones, ix.lengths = cut(n)
	b.want, ix.want = cut(want)
	b.tables, ix.tables = cut(sequences, int64(s.blocks))
	for i := range ones {
		ones[i] = 1
	}
	ix.lengths.Host = device.BytesOf(ones)
	return ix, nil
}

// setup sets every operation up and returns the largest workspace. Those that were
// set up for this batch last are not shown its tensors again.
func (b *batch) setup(s *Session) (int64, error) {
	again := s.ready == b
	s.ready = nil
	size := int64(0)
	for i, op := range s.stages[b.kind()] {
		pack := b.packs[i]
		if again {
			pack = atb.VariantPack{}
		}
		n, err := s.setup(op, pack)
		if err != nil {
			return 0, err
		}
		size = max(size, n)
	}
	s.ready = b
	return size, nil
}

// setup is op.Setup with a report to the observer.
func (s *Session) setup(op *atb.Op, pack atb.VariantPack) (int64, error) {
	if s.opt.Observe == nil {
		return op.Setup(pack, s.c)
	}
	start := s.now()
	n, err := op.Setup(pack, s.c)
	s.opt.Observe(Span{Stage: "setup", Op: op.Name(), Start: start, End: s.now()})
	return n, err
}

// execute enqueues every operation.
func (b *batch) execute(s *Session, ws atb.Buffer) error {
	for _, op := range s.stages[b.kind()] {
		if err := s.execute(op, ws); err != nil {
			return err
		}
	}
	return nil
}

// execute is op.Execute of the tensors of setup, with a report to the observer.
func (s *Session) execute(op *atb.Op, ws atb.Buffer) error {
	var pack atb.VariantPack
	if s.opt.Observe == nil {
		return op.Execute(pack, ws, s.c)
	}
	start, kernels := s.now(), s.c.Counters().Kernels.Load()
	err := op.Execute(pack, ws, s.c)
	s.opt.Observe(Span{Stage: "execute", Op: op.Name(), Start: start, End: s.now(), Kernels: s.c.Counters().Kernels.Load() - kernels})
	return err
}
