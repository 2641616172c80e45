package llama

import (
	"context"
	"fmt"
	"time"

	"goatb/kernel"
	"goatb/status"
)

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

// Timing returns the host time of the last Forward.
func (s *Session) Timing() Timing {
	if s == nil {
		return Timing{}
	}
	return s.timing
}

// Forward computes rows, each at the next position of its sequence, and returns
// the logits of those listed in want, [len(want), vocab] as float32, which stay
// valid until the next Forward. It waits for the device. Errors: a sequence out
// of range or full, a token outside the vocabulary, a closed session, those of
// the operations and of the device, and ctx's when it ends first; the sequences
// are as before then.
func (s *Session) Forward(ctx context.Context, rows []Row, want []int32) ([]float32, error) {
	if err := status.Given("forward", "session", s, "ctx", ctx); err != nil {
		return nil, err
	}
	if err := s.check(rows, want); err != nil {
		return nil, err
	}
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	b, err := s.batch(Shape{Rows: len(rows), Want: len(want), Sequences: runs(rows)})
	if err != nil {
		return nil, err
	}
	if err := s.place(b, rows, want); err != nil {
		return nil, err
	}
	if err := s.run(ctx, b); err != nil {
		s.takeBack(rows)
		return nil, err
	}
	kernel.LoadFloats(b.floats, b.logitsHost.Bytes(), s.m.DType)
	return b.floats, nil
}

func (s *Session) check(rows []Row, want []int32) error {
	if s.m == nil {
		return fmt.Errorf("forward: a zero session: make one with NewSession")
	}
	if s.closed || s.m.closed {
		return fmt.Errorf("forward: the session or its model is closed")
	}
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

// settle waits for the work of a Forward that has failed, since it may still
// read the host memory that the next one writes. What that work fails with was
// returned, or belongs to rows that were taken back.
func (s *Session) settle(ctx context.Context) error {
	if !s.unfinished {
		return nil
	}
	_ = s.stream.Synchronize(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	s.unfinished = false
	return nil
}

// runs is the number of runs of rows that follow each other in one sequence.
func runs(rows []Row) (n int) {
	for i := range rows {
		if i == 0 || rows[i].Seq != rows[i-1].Seq {
			n++
		}
	}
	return n
}

// place gives every row its position, cache slot and block table, and writes
// the batch's host side.
func (s *Session) place(b *batch, rows []Row, want []int32) error {
	run := -1
	for i := range rows {
		r := &rows[i]
		q := &s.seqs[r.Seq]
		if q.length >= s.m.Config.MaxSeq {
			s.takeBack(rows[:i])
			return fmt.Errorf("forward: row %d: sequence %d is full at %d positions", i, r.Seq, s.m.Config.MaxSeq)
		}
		pos := q.length
		if pos == len(q.table)*s.opt.BlockSize {
			q.table = append(q.table, s.free[len(s.free)-1])
			s.free = s.free[:len(s.free)-1]
		}
		b.ids[i], b.positions[i] = r.Token, int32(pos)
		b.slots[i] = q.table[pos/s.opt.BlockSize]*int32(s.opt.BlockSize) + int32(pos%s.opt.BlockSize)
		q.length++
		if i == 0 || r.Seq != rows[i-1].Seq {
			run++
			b.queries[run] = 0
		}
		b.contexts[run] = int32(q.length)
		b.queries[run]++
		if i == len(rows)-1 || rows[i+1].Seq != r.Seq {
			copy(b.tables[run*s.blocks:(run+1)*s.blocks], q.table)
		}
	}
	copy(b.want, want)
	return nil
}

// takeBack undoes place. Blocks that were taken stay with their sequences,
// which fill them later.
func (s *Session) takeBack(rows []Row) {
	for i := range rows {
		s.seqs[rows[i].Seq].length--
	}
}

// run sets everything up, enqueues it and waits.
func (s *Session) run(ctx context.Context, b *batch) error {
	start := s.now()
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
	mid := s.now()
	s.unfinished = true
	if err := s.stream.Copy(b.onDevice, b.staging); err != nil {
		return err
	}
	if err := b.execute(s, ws); err != nil {
		return err
	}
	if err := s.stream.Copy(b.logitsHost, b.logits.Data); err != nil {
		return err
	}
	end := s.now()
	s.timing = Timing{Setup: mid.Sub(start), Execute: end.Sub(mid), Kernels: s.c.Counters().Kernels.Load() - kernels}
	if err := s.stream.Synchronize(ctx); err != nil {
		return err
	}
	s.unfinished = false
	if s.opt.Observe != nil {
		s.opt.Observe(Span{Stage: "wait", Start: end, End: s.now()})
	}
	return nil
}
