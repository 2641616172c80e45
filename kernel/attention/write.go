package attention

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Write holds the kernels that copy the new rows of every sequence into a
// cache: inputs key and value [tokens, row], outputs key cache and value
// cache, of which only the rows' slots are written. The host values are those
// of source Cache.
var Write = kernel.Table{write}

// WriteParams are the parameters of the cache writers.
type WriteParams struct {
	Batch int64
	// Rows is the number of rows of key and value, Slots that of a sequence in
	// a cache, Layers that of the cache, 0 where it has no such dimension.
	Rows, Slots, Layers int64
	// Key and Value are the sizes of a row and of the cache's dimensions, in
	// elements; Head is not used.
	Key, Value Strides
	// Ring and Status are as in Params; Window is that of a ring.
	Ring, Status bool
	Window       int64
}

// params are the parameters under which the attention kernels check the same
// host values.
func (a *WriteParams) params() Params {
	return Params{
		Source: Cache, Batch: a.Batch, Rows: a.Rows, Slots: a.Slots, Layers: a.Layers,
		Query: Strides{Row: a.Key.Row}, Out: Strides{Row: a.Value.Row}, Key: a.Key, Value: a.Value,
		Ring: a.Ring, NewKeys: a.Ring, Status: a.Status, Window: a.Window,
	}
}

// writeTiling is the plan of a launch; its tail holds the sequences.
type writeTiling struct {
	P WriteParams
	// Rows is the number of rows to copy, KeyBytes and ValueBytes their sizes.
	Rows, KeyBytes, ValueBytes int64
}

// nanosPerByte estimates the time of one core for a byte copied.
const nanosPerByte = 0.15

var write = kernel.Define(kernel.Def[WriteParams, writeTiling]{
	Name:     "attention/write",
	Class:    device.Move,
	TileOn:   kernel.OnHost | kernel.OnAICPU,
	Supports: supportWrite,
	Tail:     func(_ *kernel.Problem, a WriteParams) int { return int(a.Batch) * sequenceWords },
	Tile:     tileWrite,
	Run:      runWrite,
	Cost: func(t *writeTiling, _ []int64) (flops, bytes int64) {
		return 0, 2 * t.Rows * (t.KeyBytes + t.ValueBytes)
	},
})

func supportWrite(p *kernel.Problem, a WriteParams) error {
	if len(p.In) != 2 || len(p.Out) != 2 || a.Batch < 1 {
		return status.Errorf(status.ErrInvalidParam, "want 2 inputs, 2 outputs and a batch, got %d, %d and %d", len(p.In), len(p.Out), a.Batch)
	}
	for i, s := range [...]Strides{a.Key, a.Value} {
		in, out := &p.In[i], &p.Out[i]
		if in.DType != out.DType || a.Rows*s.Row > in.Numel() || reach(s, a.Layers, a.Batch, a.Slots, 1, s.Row) > out.Numel() {
			return status.Errorf(status.ErrInvalidParam, "rows of %s do not fit into cache %s", in, out)
		}
	}
	if a.Ring && a.Window < 1 {
		return status.Errorf(status.ErrInvalidParam, "a ring cache needs a window, got %d", a.Window)
	}
	return nil
}

func tileWrite(p *kernel.Problem, a WriteParams, t *writeTiling, tail []int64) (kernel.Grid, error) {
	t.P = a
	size := func(s Strides, d *tensor.Desc) int64 { return s.Row * d.DType.Size() }
	t.KeyBytes, t.ValueBytes = size(a.Key, &p.In[0]), size(a.Value, &p.In[1])
	checked := a.params()
	c, err := newCursor(&checked, p.Values)
	if err != nil {
		return kernel.Grid{}, err
	}
	for i := range a.Batch {
		s, err := c.next(i)
		if err != nil {
			return kernel.Grid{}, err
		}
		s.write(tail, i)
		t.Rows += s.written(a.Slots)
	}
	nanos := float64(t.Rows*(t.KeyBytes+t.ValueBytes)) * nanosPerByte
	return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, max(t.Rows, 1), nanos)}, nil
}

// written returns how many rows of a sequence are copied: a ring keeps the
// last ones.
func (s *sequence) written(slots int64) int64 { return min(s.Live, slots) }

func runWrite(a *kernel.Args, block int, t *writeTiling, tail []int64) error {
	lo, hi := kernel.Share(t.Rows, block, a.Blocks)
	first := int64(0)
	for i := int64(0); i < t.P.Batch && first < hi; i++ {
		s := readSequence(tail, i)
		n := s.written(t.P.Slots)
		skip := s.Live - n
		for r := max(lo-first, 0); r < min(hi-first, n); r++ {
			slot := (s.Keys - s.Live + skip + r) % t.P.Slots
			from := s.NewRow + skip + r
			copyRow(a.Mem(2), a.Mem(0), s.Key/t.P.Key.Row+slot, from, t.KeyBytes)
			copyRow(a.Mem(3), a.Mem(1), s.Value/t.P.Value.Row+slot, from, t.ValueBytes)
		}
		first += n
	}
	return nil
}

// copyRow copies row `from` of src to row `to` of dst.
func copyRow(dst, src []byte, to, from, size int64) {
	copy(dst[to*size:(to+1)*size], src[from*size:(from+1)*size])
}
