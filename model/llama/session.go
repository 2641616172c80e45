package llama

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goatb/atb"
	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// Options size a Session.
type Options struct {
	// Sequences is the number of sequences that can be open at once.
	Sequences int
	// BlockSize is the number of positions in a block of the KV cache.
	BlockSize int
}

// Session decodes sequences with one context. It belongs to one goroutine.
type Session struct {
	m      *Model
	c      *atb.Context
	stream device.Stream
	opt    Options
	blocks int // per sequence

	embed, head *atb.Op
	layers      []*atb.Op
	caches      []kvCache
	free        []int32 // cache blocks that no sequence holds
	seqs        []sequence

	buffers map[shapeKey]*batch
	last    *batch
	own     []device.Buffer
	timing  Timing
}

// kvCache holds the keys and values of one layer.
type kvCache struct{ k, v atb.Tensor }

// sequence is the state of one sequence.
type sequence struct {
	length int
	table  []int32
}

// Row is one token to compute: its sequence and id. It takes the next position
// of its sequence.
type Row struct {
	Seq   int
	Token int32
}

// Timing is the host time of the last Forward.
type Timing struct {
	Setup, Execute time.Duration
	// Kernels is the number of kernels enqueued.
	Kernels int64
}

// shapeOf makes a shape.
func shapeOf(dims ...int64) atb.Shape { return tensor.ShapeOf(dims...) }

// NewSession makes the operations and the KV cache.
func NewSession(c *atb.Context, m *Model, o Options) (*Session, error) {
	if o.Sequences < 1 || o.BlockSize < 1 {
		return nil, fmt.Errorf("session: want at least 1 sequence and a block size of at least 1, got %d and %d", o.Sequences, o.BlockSize)
	}
	s := &Session{m: m, c: c, opt: o, buffers: map[shapeKey]*batch{}, seqs: make([]sequence, o.Sequences)}
	s.blocks = (m.Config.MaxSeq + o.BlockSize - 1) / o.BlockSize
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Session) open() error {
	var err error
	if s.stream, err = s.c.Stream(0); err != nil {
		return err
	}
	if s.embed, err = embedGraph(); err != nil {
		return err
	}
	if s.head, err = headGraph(&s.m.Config); err != nil {
		return err
	}
	total := s.blocks * s.opt.Sequences
	for range s.m.layers {
		op, err := layerGraph(&s.m.Config)
		if err != nil {
			return err
		}
		s.layers = append(s.layers, op)
		k, err := s.tensor(s.m.DType, int64(total), int64(s.opt.BlockSize), int64(s.m.Config.KVHeads), int64(s.m.Config.HeadDim()))
		if err != nil {
			return err
		}
		v, err := s.tensor(s.m.DType, k.Desc.Shape.Dims()...)
		if err != nil {
			return err
		}
		s.caches = append(s.caches, kvCache{k, v})
	}
	for b := total - 1; b >= 0; b-- {
		s.free = append(s.free, int32(b))
	}
	for i := range s.seqs {
		s.seqs[i].table = make([]int32, 0, s.blocks)
	}
	return nil
}

// tensor allocates a tensor that Close frees.
func (s *Session) tensor(t atb.DType, dims ...int64) (atb.Tensor, error) {
	x, err := atb.NewTensor(s.c, tensor.Of(t, dims...))
	if err == nil {
		s.own = append(s.own, x.Data)
	}
	return x, err
}

// Length returns the number of positions that a sequence holds.
func (s *Session) Length(seq int) int { return s.seqs[seq].length }

// Reset empties a sequence.
func (s *Session) Reset(seq int) {
	q := &s.seqs[seq]
	s.free = append(s.free, q.table...)
	q.table, q.length = q.table[:0], 0
}

// Timing returns the host time of the last Forward.
func (s *Session) Timing() Timing { return s.timing }

// Forward computes rows, each at the next position of its sequence, and returns
// the logits of those listed in want, [len(want), vocab] as float32, which stay
// valid until the next Forward. It waits for the device. Errors: a sequence out
// of range or full, a token outside the vocabulary, those of the operations and
// of the device; the sequences are as before then.
func (s *Session) Forward(ctx context.Context, rows []Row, want []int32) ([]float32, error) {
	if err := s.check(rows, want); err != nil {
		return nil, err
	}
	b, err := s.batch(len(rows), len(want))
	if err != nil {
		return nil, err
	}
	if err := s.place(b, rows, want); err != nil {
		return nil, err
	}
	if err := s.run(ctx, b); err != nil {
		for i := range rows {
			s.seqs[rows[i].Seq].length--
		}
		return nil, err
	}
	kernel.LoadFloats(b.floats, b.logitsHost.Bytes(), s.m.DType)
	return b.floats, nil
}

func (s *Session) check(rows []Row, want []int32) error {
	if len(rows) == 0 || len(want) == 0 {
		return fmt.Errorf("forward: want at least 1 row and 1 wanted row, got %d and %d", len(rows), len(want))
	}
	for i := range rows {
		r := &rows[i]
		if r.Seq < 0 || r.Seq >= len(s.seqs) {
			return fmt.Errorf("forward: row %d: want a sequence below %d, got %d", i, len(s.seqs), r.Seq)
		}
		if r.Token < 0 || int(r.Token) >= s.m.Config.Vocab {
			return fmt.Errorf("forward: row %d: want a token below %d, got %d", i, s.m.Config.Vocab, r.Token)
		}
	}
	for i, w := range want {
		if w < 0 || int(w) >= len(rows) {
			return fmt.Errorf("forward: wanted row %d: want below %d, got %d", i, len(rows), w)
		}
	}
	return nil
}

// place gives every row its position, cache slot and block table, and writes
// the batch's host side.
func (s *Session) place(b *batch, rows []Row, want []int32) error {
	for i := range rows {
		r := &rows[i]
		q := &s.seqs[r.Seq]
		if q.length >= s.m.Config.MaxSeq {
			for j := range i {
				s.seqs[rows[j].Seq].length--
			}
			return fmt.Errorf("forward: row %d: sequence %d is full at %d positions", i, r.Seq, s.m.Config.MaxSeq)
		}
		if q.length == len(q.table)*s.opt.BlockSize {
			q.table = append(q.table, s.free[len(s.free)-1])
			s.free = s.free[:len(s.free)-1]
		}
		pos := q.length
		b.ids[i], b.positions[i] = r.Token, int32(pos)
		b.slots[i] = q.table[pos/s.opt.BlockSize]*int32(s.opt.BlockSize) + int32(pos%s.opt.BlockSize)
		q.length++
		b.contexts[i] = int32(q.length)
	}
	for i := range rows {
		copy(b.tables[i*s.blocks:(i+1)*s.blocks], s.seqs[rows[i].Seq].table)
	}
	copy(b.want, want)
	return nil
}

// run sets everything up, enqueues it and waits.
func (s *Session) run(ctx context.Context, b *batch) error {
	start := time.Now()
	kernels := s.c.Counters().Kernels.Load()
	s.last = b
	size, err := b.setup(s)
	if err != nil {
		return err
	}
	ws, err := s.c.Workspace(size)
	if err != nil {
		return err
	}
	mid := time.Now()
	if err := s.stream.Copy(b.onDevice, b.staging); err != nil {
		return err
	}
	if err := b.execute(s, ws); err != nil {
		return err
	}
	if err := s.stream.Copy(b.logitsHost, b.head.Out[0].Data); err != nil {
		return err
	}
	s.timing = Timing{Setup: mid.Sub(start), Execute: time.Since(mid), Kernels: s.c.Counters().Kernels.Load() - kernels}
	return s.stream.Synchronize(ctx)
}

// Close closes the operations and frees the caches. Closing twice is legal.
func (s *Session) Close() error {
	var errs []error
	for _, op := range append(s.layers, s.embed, s.head) {
		errs = append(errs, op.Close())
	}
	for _, b := range s.own {
		if b.Live() {
			errs = append(errs, s.m.dev.Free(device.Whole(b.Allocation())))
		}
	}
	s.own = nil
	return errors.Join(errs...)
}

// Layer returns the operation of a layer and the inputs of its last Setup, for
// tools that show graphs. Before the first Forward there are no inputs.
func (s *Session) Layer(i int) (*atb.Op, []atb.Tensor) {
	return s.layers[i], s.lastInputs(i)
}

func (s *Session) lastInputs(i int) []atb.Tensor {
	if s.last == nil {
		return nil
	}
	return s.last.layers[i].In
}

// LowerBound is the largest lower bound of the intermediates' arena among the
// operations that are set up, in bytes.
func (s *Session) LowerBound() int64 {
	var most int64
	for _, op := range append(s.layers[:len(s.layers):len(s.layers)], s.embed, s.head) {
		if w := op.Workspace(); w != nil {
			most = max(most, w.LowerBound)
		}
	}
	return most
}

// Rewind drops the last n positions of a sequence; their cache blocks stay with
// it. Errors: n below 0 or beyond the sequence's length.
func (s *Session) Rewind(seq, n int) error {
	if seq < 0 || seq >= len(s.seqs) || n < 0 || n > s.seqs[seq].length {
		return fmt.Errorf("rewind: want a sequence below %d and at most its length in positions, got sequence %d and %d positions", len(s.seqs), seq, n)
	}
	s.seqs[seq].length -= n
	return nil
}
