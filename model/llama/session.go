package llama

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"goatb/atb"
	"goatb/device"
	"goatb/status"
)

// Options size a Session.
type Options struct {
	// Sequences is the number of sequences that can be open at once.
	Sequences int
	// BlockSize is the number of positions in a block of the KV cache.
	BlockSize int
	// Whole makes one graph of a step instead of one for embeddings, each layer and
	// head, for models whose weights fit one graph: some 60 layers, or 30 with int8
	// weights. A context whose policy captures launches
	// asks for it by itself: a step is one replay then.
	Whole bool
	// Observe, when not nil, is told what the host did, from the goroutine that
	// calls Forward.
	Observe func(Span)
}

// Span is a piece of the host's work in a Forward.
type Span struct {
	// Stage is "setup", "execute" or "wait", Op the operation's name, empty for
	// the wait.
	Stage, Op  string
	Start, End time.Time
	// Kernels is the number of kernels that an execute has enqueued.
	Kernels int64
}

// Session decodes sequences with one context. It belongs to one goroutine. It
// may be closed before or after its model, its context and the device.
type Session struct {
	m      *Model
	c      *atb.Context
	stream device.Stream
	now    func() time.Time
	opt    Options
	blocks int // per sequence

	// stages are the operations of a step of each kind in order: embeddings, layers
	// and head, or the one graph of a whole step. The kinds share embeddings and head.
	stages [kinds][]*atb.Op
	caches []kvCache
	// kCaches and vCaches are the memory of all layers' caches.
	kCaches, vCaches atb.Tensor
	free             []int32 // cache blocks that no sequence holds
	seqs             []sequence

	memory  memory // of the caches
	batches map[Shape]*batch
	last    *batch
	// ready is the batch that every operation was set up for last, nil after a
	// Setup that failed.
	ready *batch
	clock uint64 // counts uses of batches
	// unfinished says that the device may still work for a Forward that has
	// returned an error.
	unfinished bool
	closed     bool
	timing     Timing
}

// kvCache holds the keys and values of one layer.
type kvCache struct{ k, v atb.Tensor }

// sequence is the state of one sequence.
type sequence struct {
	length int
	table  []int32
}

// NewSession makes the operations and the KV cache. Errors: a nil or closed
// model, a context on another device than the model's, a cache of more than
// 2^31-1 positions, and those of the device.
func NewSession(c *atb.Context, m *Model, o Options) (*Session, error) {
	switch {
	case m == nil || m.closed:
		return nil, fmt.Errorf("session: want an open model")
	case c == nil || c.Device() != m.memory.dev:
		return nil, fmt.Errorf("session: want a context on the model's device")
	case o.Sequences < 1 || o.BlockSize < 1:
		return nil, fmt.Errorf("session: want at least 1 sequence and a block size of at least 1, got %d and %d", o.Sequences, o.BlockSize)
	}
	s := &Session{m: m, c: c, opt: o, memory: memory{c: c, dev: m.memory.dev}, batches: map[Shape]*batch{}, now: device.Clock(device.HostOf(c.Device()))}
	s.blocks = 1 + (m.Config.MaxSeq-1)/o.BlockSize
	if positions := float64(s.blocks) * float64(o.BlockSize) * float64(o.Sequences); positions > math.MaxInt32 {
		return nil, fmt.Errorf("session: want a cache of at most %d positions, got %.3g: %d sequences of %d blocks of %d",
			math.MaxInt32, positions, o.Sequences, s.blocks, o.BlockSize)
	}
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
	s.opt.Whole = (s.opt.Whole || s.c.Captures()) && s.m.fitsWhole()
	if err := s.makeStages(); err != nil {
		return err
	}
	total := s.blocks * s.opt.Sequences
	layers := s.m.Config.Layers
	for _, x := range [...]*atb.Tensor{&s.kCaches, &s.vCaches} {
		if *x, err = s.memory.tensor(s.m.DType, int64(layers)*int64(total), int64(s.opt.BlockSize), int64(s.m.Config.KVHeads), int64(s.m.Config.HeadDim())); err != nil {
			return err
		}
	}
	for i := range layers {
		s.caches = append(s.caches, kvCache{part(s.kCaches, layers, i), part(s.vCaches, layers, i)})
	}
	for b := total - 1; b >= 0; b-- {
		s.free = append(s.free, int32(b))
	}
	s.seqs = make([]sequence, s.opt.Sequences)
	for i := range s.seqs {
		s.seqs[i].table = make([]int32, 0, s.blocks)
	}
	return nil
}

// makeStages makes the operations.
func (s *Session) makeStages() error {
	if s.opt.Whole {
		for k := range kinds {
			op, err := stepGraph(s.m, k)
			if err != nil {
				return err
			}
			s.stages[k] = []*atb.Op{op}
		}
		return nil
	}
	embed, err := embedGraph(s.m)
	if err != nil {
		return err
	}
	s.stages[single] = []*atb.Op{embed}
	head, err := headGraph(s.m)
	if err != nil {
		return err
	}
	for k := range kinds {
		s.stages[k] = []*atb.Op{embed, head}
		for i := range s.m.Config.Layers {
			layer, err := layerGraph(s.m, k, i == 0)
			if err != nil {
				return err
			}
			s.stages[k] = slices.Insert(s.stages[k], i+1, layer)
		}
	}
	return nil
}

// ops yields every operation, those that the kinds share once for each.
func (s *Session) ops() iter.Seq[*atb.Op] {
	return func(yield func(*atb.Op) bool) {
		for k := range s.stages {
			for _, op := range s.stages[k] {
				if !yield(op) {
					return
				}
			}
		}
	}
}

// Length returns the number of positions that a sequence holds, 0 for one that
// there is not.
func (s *Session) Length(seq int) int {
	if s == nil || seq < 0 || seq >= len(s.seqs) {
		return 0
	}
	return s.seqs[seq].length
}

// Rewind drops the last n positions of a sequence, with the cache blocks that
// they alone filled. Errors: a sequence that there is not, n negative or above
// the sequence's length.
func (s *Session) Rewind(seq, n int) error {
	if err := status.Given("rewind", "session", s); err != nil {
		return err
	}
	if seq < 0 || seq >= len(s.seqs) {
		return fmt.Errorf("rewind: want a sequence below %d, got %d", len(s.seqs), seq)
	}
	q := &s.seqs[seq]
	if n < 0 || n > q.length {
		return fmt.Errorf("rewind: want at most the %d positions of sequence %d, got %d", q.length, seq, n)
	}
	q.length -= n
	keep := (q.length + s.opt.BlockSize - 1) / s.opt.BlockSize
	s.free = append(s.free, q.table[keep:]...)
	q.table = q.table[:keep]
	return nil
}

// Reset empties a sequence: it is a Rewind by its length.
func (s *Session) Reset(seq int) error { return s.Rewind(seq, s.Length(seq)) }

// Close closes the operations and frees the caches. Closing twice is legal.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	s.closed = true
	var errs []error
	for op := range s.ops() {
		errs = append(errs, op.Close())
	}
	for key, b := range s.batches {
		errs = append(errs, b.memory.free())
		delete(s.batches, key)
	}
	return errors.Join(append(errs, s.memory.free())...)
}

// Layer returns the operation that computes a layer in steps as the last one was,
// which is the whole step's where that is one graph, and the inputs of its last
// Setup, for tools that show graphs. Before the first Forward there are no inputs,
// and for a layer that there is not there is no operation.
func (s *Session) Layer(i int) (*atb.Op, []atb.Tensor) {
	if s == nil || s.m == nil {
		return nil, nil
	}
	at := i + 1
	if s.opt.Whole {
		at = 0
	}
	stages := s.stages[single]
	if s.last != nil {
		stages = s.stages[s.last.kind()]
	}
	switch {
	case i < 0 || i >= s.m.Config.Layers || at >= len(stages):
		return nil, nil
	case s.last == nil:
		return stages[at], nil
	}
	return stages[at], s.last.packs[at].In
}

// LowerBound is the largest lower bound of the intermediates' arena among the
// operations that are set up, in bytes.
func (s *Session) LowerBound() int64 {
	if s == nil {
		return 0
	}
	var most int64
	for op := range s.ops() {
		if w := op.Workspace(); w != nil {
			most = max(most, w.LowerBound)
		}
	}
	return most
}
