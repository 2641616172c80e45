package attention

import (
	inner "goatb/internal/asm/attend"
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/tensor"
)

const (
	// keyGeneral walks tiles of query rows, keySingle has at most one row per
	// sequence, besides those of no sequence.
	keyGeneral = iota
	keySingle

	numKeys = iota
)

const (
	// maxRows bounds the number of query rows, over all heads of an item, that
	// share a tile of keys.
	maxRows = 256
	// rowFloats bounds what is read and written for the rows of an item, half a
	// second level cache of 1 MiB.
	rowFloats = 128 << 10
	// mixedRows is the number of rows whose values are mixed at once as they lie.
	mixedRows = 16
	// keyTile is the number of keys of a tile. It must not depend on the machine,
	// since the order of sums does.
	keyTile = 128
	// floatBytes is the size of an element of scratch.
	floatBytes = 4
	// nanosPerProduct estimates one core's time for a multiplication and an
	// addition, nanosPerWidened that for widening an element, in assembly and in
	// plain Go.
	nanosPerProduct, plainNanosPerProduct = 0.05, 0.22
	nanosPerWidened, plainNanosPerWidened = 0.1, 0.6
	// nanosPerItem estimates what an item costs besides.
	nanosPerItem = 200
)

// tiling is the plan of a launch.
type tiling struct {
	P     Params
	Group int64
	// RowTile rows of query heads share a tile of KeyTile keys.
	RowTile, KeyTile int64
	// Parts is the number of parts that a row of Parts' output has room for;
	// for Attend it is 0 and an item does all parts of its rows.
	Parts int64
	// Items is the number of items of all sequences.
	Items int64
	// Scratch says where a block's buffers lie.
	Scratch scratch
	// Types of the operands.
	QueryType, KeyType, OutType, MaskType, SlopeType, FactorType tensor.DType
	// Flops and Bytes are the cost.
	Flops, Bytes int64
}

// scratch lays a block's float32 buffers out; each field is the first element
// of the buffer of its name, Size that of all.
type scratch struct {
	Spans, Query, Key, Value    int64
	Score, Bias                 int64
	Part, PartMax, PartNorm     int64
	Mixed, Sights               int64
	PackKey, PackValue, PackSum int64
	Total, TotalMax, TotalNorm  int64
	Before, TileNorm, Size      int64
}

// sightFloats is the room for a row's sight: two int64.
const sightFloats = 4

// line is the number of float32 in a cache line: buffers start at lines.
const line = 16

func layout(a *Params, rows, keys int64) scratch {
	var s scratch
	for _, b := range [...]struct {
		at *int64
		n  int64
	}{
		{&s.Spans, line}, {&s.Query, rows * int64(vec.Padded(int(a.KeySize)))}, {&s.Key, keys * a.KeySize}, {&s.Value, keys * a.ValueSize},
		{&s.Score, rows * keys}, {&s.Bias, keys},
		{&s.Part, rows * a.ValueSize}, {&s.PartMax, rows}, {&s.PartNorm, rows},
		{&s.Total, rows * a.ValueSize}, {&s.TotalMax, rows}, {&s.TotalNorm, rows}, {&s.Before, rows}, {&s.TileNorm, rows},
		{&s.Mixed, mixedRows * a.ValueSize}, {&s.Sights, rows * sightFloats},
		{&s.PackKey, keys * int64(vec.Padded(int(a.KeySize)))}, {&s.PackValue, keys * panelWidth(a.ValueSize)},
		{&s.PackSum, mostTileRows * inner.PanelColumns},
	} {
		*b.at = s.Size
		s.Size += (b.n + line - 1) / line * line
	}
	return s
}

// rowTile is the largest number of query rows of an item.
func rowTile(a *Params) int64 {
	return min(a.mostRows(), max(a.Rows*a.group(), 1))
}

// mostRows is the largest number of rows of an item that the operands' sizes allow.
func (a *Params) mostRows() int64 {
	return min(maxRows, max(rowFloats/(a.KeySize+2*a.ValueSize+keyTile), panelRows))
}

// scratchBytes bounds the scratch of every tiling.
func scratchBytes(p *kernel.Problem, a Params) int64 {
	return int64(max(p.Machine.Cores, 1)) * layout(&a, rowTile(&a), keyTile).Size * floatBytes
}

// tile writes the sequences to the tail and cuts them into items; apart is the
// number of parts that are written apart, 0 for none.
func tile(p *kernel.Problem, a Params, t *tiling, tail []int64, apart int64) (kernel.Grid, error) {
	t.P, t.Group, t.KeyTile, t.Parts = a, a.group(), keyTile, apart
	t.QueryType, t.KeyType, t.OutType = p.In[InQuery].DType, p.In[InKey].DType, p.Out[0].DType
	t.MaskType, t.SlopeType, t.FactorType = p.In[InMask].DType, p.In[InSlopes].DType, p.In[InFactor].DType
	c, err := newCursor(&t.P, p.Values)
	if err != nil {
		return kernel.Grid{}, err
	}
	single := a.Quant == NoQuant
	for i := range a.Batch {
		s, err := c.next(i)
		if err != nil {
			return kernel.Grid{}, err
		}
		s.write(tail, i)
		single = single && s.Rows <= 1
	}
	rest := c.rest()
	rest.write(tail, a.Batch)
	nanos, most := t.weigh(tail)
	blocks := kernel.BlocksFor(p.Machine, a.Batch*a.Heads*max(most, 1)*max(apart, 1), nanos)
	t.cut(tail, most, blocks)
	t.Scratch = layout(&a, t.RowTile, t.KeyTile)
	g := kernel.Grid{Blocks: min(blocks, int(t.Items))}
	if single {
		g.Key = keySingle
	}
	return g, nil
}

// weigh sums the cost up and returns its time on one core and the largest
// number of rows of a sequence.
func (t *tiling) weigh(tail []int64) (nanos float64, most int64) {
	a := &t.P
	size := a.KeySize + a.ValueSize
	var products, widened float64
	for i := range a.Batch + 1 {
		s := readSequence(tail, i)
		most = max(most, s.Rows)
		seen := t.seen(&s)
		products += seen * float64(a.Heads*size)
		t.Flops += 2 * int64(seen*float64(a.Heads*size))
		t.Bytes += s.Keys*a.KeyHeads*size*t.KeyType.Size() + s.Rows*a.Heads*(a.KeySize*t.QueryType.Size()+a.ValueSize*t.OutType.Size())
		if t.KeyType != tensor.Float32 && s.Rows > 0 {
			widened += seen / float64(min(s.Rows*t.Group, a.mostRows())) * float64(a.Heads*size)
		}
	}
	if a.Quant != NoQuant {
		products *= 2
	}
	return products*kernel.Nanos(nanosPerProduct, plainNanosPerProduct) + widened*kernel.Nanos(nanosPerWidened, plainNanosPerWidened) + float64(a.Batch*a.KeyHeads)*nanosPerItem, most
}

// seen returns how many pairs of query row and key a sequence has.
func (t *tiling) seen(s *sequence) float64 {
	a := &t.P
	rows, keys := float64(s.Live), float64(s.Keys)
	if a.Causal {
		keys = max(keys-rows/2, keys/2)
	}
	if a.Window > 0 {
		keys = min(keys, float64(a.Window))
	}
	return rows * keys
}

// itemsPerBlock is the number of items per block that evens their work out.
const itemsPerBlock = 2

// cut chooses the row tile and counts the items: itemsPerBlock for every block
// where the rows allow it.
func (t *tiling) cut(tail []int64, most int64, blocks int) {
	t.RowTile = min(t.P.mostRows(), max(most*t.Group, 1))
	for {
		t.Items = 0
		for i := range t.P.Batch + 1 {
			s := readSequence(tail, i)
			t.Items += t.items(&s)
		}
		if t.Items >= itemsPerBlock*int64(blocks) || t.RowTile == 1 || blocks == 1 {
			return
		}
		t.RowTile = (t.RowTile + 1) / 2
	}
}

// items returns the number of items of a sequence. Where parts are written
// apart, rows without any have an item too.
func (t *tiling) items(s *sequence) int64 {
	n := t.P.KeyHeads * t.rowTiles(s)
	if t.Parts > 0 {
		_, apart := s.parts(&t.P)
		n *= max(apart, 1)
	}
	return n
}

// rowTiles returns the number of row tiles of a key head.
func (t *tiling) rowTiles(s *sequence) int64 { return (s.Rows*t.Group + t.RowTile - 1) / t.RowTile }
