package attention

import (
	"math"
	"math/rand/v2"
	"slices"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// call is a launch with its logical data, apart from how it lies in memory.
type call struct {
	a          Params
	dtype      tensor.DType
	rows, keys []int64
	status     []int64
	layer      int64
	rng        *rand.Rand
	// q, k and v hold the rows of each sequence, [rows][heads][size].
	q, k, v [][]float64
	mask    []float64
	// score, when not nil, makes a score of a product.
	score func(dot float64, i int, h, r, j int64) float64
	// weigh, when not nil, replaces a probability; top is the row's largest.
	weigh func(p, top float64, h int64) float64

	problem kernel.Problem
	in      [][]byte
	// workers lists the numbers of workers to run with; nil is kerneltest's choice.
	workers []int
}

// source names a way to lay keys and queries out.
type source struct {
	name   string
	layout func(c *call)
}

// sources lists the layouts. Rows, slots and strides follow from the lengths.
var sources = []source{
	{"tokens", func(c *call) {
		c.packQuery()
		c.a.Slots = sum(c.keys) + 2
		c.a.Key, c.a.Value = sideBySide(c.a.KeyHeads, c.a.KeySize), sideBySide(c.a.KeyHeads, c.a.ValueSize)
	}},
	{"padded tokens", func(c *call) {
		c.padQuery()
		c.a.Slots = slices.Max(c.keys) + 1
		c.a.Key, c.a.Value = headMajor(c.a.KeyHeads, c.a.Slots, c.a.KeySize), headMajor(c.a.KeyHeads, c.a.Slots, c.a.ValueSize)
	}},
	{"cache", func(c *call) {
		c.packQuery()
		c.cache(sideBySide(c.a.KeyHeads, c.a.KeySize), sideBySide(c.a.KeyHeads, c.a.ValueSize))
	}},
	{"head major cache", func(c *call) {
		c.padQuery()
		n := slices.Max(c.keys) + 1
		c.cache(headMajor(c.a.KeyHeads, n, c.a.KeySize), headMajor(c.a.KeyHeads, n, c.a.ValueSize))
	}},
	{"pages", func(c *call) {
		c.packQuery()
		c.a.Source, c.a.Slots = Paged, 5
		c.a.Columns = max((slices.Max(c.keys)+4)/5, 1)
		c.a.Blocks = c.a.Columns*c.a.Batch + 3
		c.a.Key, c.a.Value = sideBySide(c.a.KeyHeads, c.a.KeySize), sideBySide(c.a.KeyHeads, c.a.ValueSize)
		c.a.Key.Batch, c.a.Value.Batch = 5*c.a.Key.Row, 5*c.a.Value.Row
	}},
	{"ring", func(c *call) {
		c.packQuery()
		c.cache(sideBySide(c.a.KeyHeads, c.a.KeySize), sideBySide(c.a.KeyHeads, c.a.ValueSize))
		c.ring(slices.Max(c.rows) + 19)
	}},
	{"ring with new keys", func(c *call) {
		c.packQuery()
		c.cache(sideBySide(c.a.KeyHeads, c.a.KeySize), sideBySide(c.a.KeyHeads, c.a.ValueSize))
		c.ring(20)
		c.a.NewKeys = true
		c.a.NewKey, c.a.NewValue = sideBySide(c.a.KeyHeads, c.a.KeySize), sideBySide(c.a.KeyHeads, c.a.ValueSize)
	}},
}

func sum(v []int64) int64 {
	n := int64(0)
	for _, x := range v {
		n += x
	}
	return n
}

func sideBySide(heads, size int64) Strides { return Strides{Row: heads * size, Head: size} }

func headMajor(heads, rows, size int64) Strides {
	return Strides{Row: size, Head: rows * size, Batch: heads * rows * size}
}

func (c *call) packQuery() {
	c.a.Rows = sum(c.rows) + 3
	c.a.Query, c.a.Out = sideBySide(c.a.Heads, c.a.KeySize), sideBySide(c.a.Heads, c.a.ValueSize)
}

func (c *call) padQuery() {
	c.a.Rows = slices.Max(c.rows) + 1
	c.a.Query, c.a.Out = headMajor(c.a.Heads, c.a.Rows, c.a.KeySize), headMajor(c.a.Heads, c.a.Rows, c.a.ValueSize)
}

func (c *call) cache(key, value Strides) {
	c.a.Source, c.a.Layers, c.layer = Cache, 3, 1
	c.a.Slots = slices.Max(c.keys) + 1
	for _, s := range []*Strides{&key, &value} {
		s.Batch = c.a.Slots * s.Row
		if s.Head > s.Row {
			s.Batch = c.a.KeyHeads * s.Head
		}
		s.Layer = c.a.Batch * s.Batch
	}
	c.a.Key, c.a.Value = key, value
}

// ring cuts the cache to slots and sets a window.
func (c *call) ring(slots int64) {
	c.a.Ring, c.a.Causal, c.a.Window, c.a.Slots = true, true, 20, slots
	for _, s := range []*Strides{&c.a.Key, &c.a.Value} {
		s.Batch = slots * s.Row
		s.Layer = c.a.Batch * s.Batch
	}
}

// newCall makes a call with plain softmax attention of the given lengths.
func newCall(seed uint64, dtype tensor.DType, heads, keyHeads, keySize, valueSize int64, rows, keys []int64) *call {
	return &call{
		a: Params{
			Heads: heads, KeyHeads: keyHeads, KeySize: keySize, ValueSize: valueSize, Batch: int64(len(rows)),
			QScale: 1, QKScale: float32(1 / math.Sqrt(float64(keySize))),
		},
		dtype: dtype, rows: rows, keys: keys, rng: rand.New(rand.NewPCG(seed, 1)),
	}
}

// draw makes n random elements of the type.
func (c *call) draw(n int64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = roundTo(c.rng.Float64()*2-1, c.dtype)
	}
	return out
}

func roundTo(v float64, t tensor.DType) float64 {
	switch t {
	case tensor.Float16:
		return float64(tensor.F16From(float32(v)).Float32())
	case tensor.BFloat16:
		return float64(tensor.BF16From(float32(v)).Float32())
	case tensor.Int8:
		return math.Round(v * 100)
	}
	return float64(float32(v))
}

func encode(values []float64, t tensor.DType) []byte {
	b := make([]byte, int64(len(values))*t.Size())
	if t == tensor.Int8 {
		for i, v := range values {
			b[i] = byte(int8(v))
		}
		return b
	}
	f := make([]float32, len(values))
	for i, v := range values {
		f[i] = float32(v)
	}
	kernel.StoreFloats(b, f, t)
	return b
}

func decode(b []byte, t tensor.DType) []float64 {
	f := make([]float32, int64(len(b))/t.Size())
	kernel.LoadFloats(f, b, t)
	out := make([]float64, len(f))
	for i, v := range f {
		out[i] = float64(v)
	}
	return out
}

// put sets input i.
func (c *call) put(i int, d tensor.Desc, b []byte) { c.problem.In[i], c.in[i] = d, b }

func (c *call) putFloats(i int, values []float64, t tensor.DType) {
	c.put(i, tensor.Of(t, int64(len(values))), encode(values, t))
}

// build draws the data, lays it out as the layout says and fills the rest of
// the operands with values that must not be read.
func (c *call) build(layout func(*call)) *call {
	layout(c)
	c.problem.In, c.in = make([]tensor.Desc, NumIn), make([][]byte, NumIn)
	for i := range c.rows {
		c.q = append(c.q, c.draw(c.rows[i]*c.a.Heads*c.a.KeySize))
		c.k = append(c.k, c.draw(c.keys[i]*c.a.KeyHeads*c.a.KeySize))
		c.v = append(c.v, c.draw(c.keys[i]*c.a.KeyHeads*c.a.ValueSize))
	}
	c.layQuery()
	table := c.table()
	c.layRows(InKey, InNewKey, c.k, c.a.Key, c.a.NewKey, c.a.KeySize, table)
	c.layRows(InValue, InNewValue, c.v, c.a.Value, c.a.NewValue, c.a.ValueSize, table)
	out := tensor.Of(c.dtype, reach(c.a.Out, 0, c.a.Batch, c.a.Rows, c.a.Heads, c.a.ValueSize))
	if c.dtype == tensor.Int8 {
		out.DType = tensor.Float32
	}
	c.problem.Out, c.problem.Params = []tensor.Desc{out}, c.a
	c.setValues()
	return c
}

func (c *call) setValues() {
	v := [][]int64{c.rows}
	switch {
	case c.a.Source == Paged:
		v = [][]int64{c.rows, c.keys}
	case c.a.Source == Cache:
		v = [][]int64{c.keys, c.rows, {c.layer}}
		if c.a.Status {
			v = append(v, c.status)
		}
	case !slices.Equal(c.rows, c.keys):
		v = [][]int64{slices.Concat(c.rows, c.keys)}
	}
	c.problem.Values, c.problem.Val = v, nil
	for _, x := range v {
		c.problem.Val = append(c.problem.Val, tensor.Of(tensor.Int32, int64(len(x))))
	}
}

// poisoned makes n elements that must not be read.
func (c *call) poisoned(n int64) []float64 {
	return slices.Repeat([]float64{math.NaN()}, int(n))
}

func (c *call) layQuery() {
	s := c.a.Query
	mem := c.poisoned(reach(s, 0, c.a.Batch, c.a.Rows, c.a.Heads, c.a.KeySize))
	for i := range c.rows {
		for at := range c.rows[i] * c.a.Heads {
			r, h := at/c.a.Heads, at%c.a.Heads
			to := c.queryAt(i, r, h, s)
			copy(mem[to:to+c.a.KeySize], c.q[i][at*c.a.KeySize:])
		}
	}
	c.putFloats(InQuery, mem, c.dtype)
}

// queryAt locates query row r of sequence i and head h.
func (c *call) queryAt(i int, r, h int64, s Strides) int64 {
	if s.Batch != 0 {
		return int64(i)*s.Batch + r*s.Row + h*s.Head
	}
	return (sum(c.rows[:i])+r)*s.Row + h*s.Head
}

// table draws the blocks of a paged cache.
func (c *call) table() []int32 {
	if c.a.Source != Paged {
		return nil
	}
	t := make([]int32, c.a.Batch*c.a.Columns)
	for i, b := range c.rng.Perm(int(c.a.Blocks))[:len(t)] {
		t[i] = int32(b)
	}
	for i := range c.keys {
		for col := (c.keys[i] + c.a.Slots - 1) / c.a.Slots; col < c.a.Columns; col++ {
			t[int64(i)*c.a.Columns+col] = -7
		}
	}
	c.put(InTable, tensor.Of(tensor.Int32, c.a.Batch, c.a.Columns), device.BytesOf(t))
	return t
}

// layRows lays keys or values out.
func (c *call) layRows(port, newPort int, rows [][]float64, s, fresh Strides, size int64, table []int32) {
	batch := c.a.Batch
	if c.a.Source == Paged {
		batch = c.a.Blocks
	}
	mem := c.poisoned(reach(s, c.a.Layers, batch, c.a.Slots, c.a.KeyHeads, size))
	newMem := c.poisoned(max(reach(fresh, 0, 1, c.a.Rows, c.a.KeyHeads, size), 1))
	for i := range rows {
		for at := range c.keys[i] * c.a.KeyHeads {
			j, h := at/c.a.KeyHeads, at%c.a.KeyHeads
			row := rows[i][at*size : (at+1)*size]
			if old := c.keys[i] - c.rows[i]; c.a.NewKeys && j >= old {
				to := (sum(c.rows[:i])+j-old)*fresh.Row + h*fresh.Head
				copy(newMem[to:], row)
				continue
			}
			to := c.keyAt(i, j, s, table) + h*s.Head
			copy(mem[to:to+size], row)
		}
	}
	c.putFloats(port, mem, c.dtype)
	if c.a.NewKeys {
		c.putFloats(newPort, newMem, c.dtype)
	}
}

// keyAt locates key row j of sequence i.
func (c *call) keyAt(i int, j int64, s Strides, table []int32) int64 {
	switch {
	case c.a.Source == Paged:
		return int64(table[int64(i)*c.a.Columns+j/c.a.Slots])*s.Batch + j%c.a.Slots*s.Row
	case c.a.Source == Tokens && s.Batch == 0:
		return (sum(c.keys[:i]) + j) * s.Row
	case c.a.Ring:
		j %= c.a.Slots
	}
	return c.layer*s.Layer + int64(i)*s.Batch + j*s.Row
}

// reference computes query row r of sequence i and head h in float64.
func (c *call) reference(i int, r, h int64) []float64 {
	a := &c.a
	out := make([]float64, a.ValueSize)
	if a.Status && c.status[i] == 0 {
		return out
	}
	kh, pos := h/(a.Heads/a.KeyHeads), c.keys[i]-c.rows[i]+r
	s := slices.Repeat([]float64{math.Inf(-1)}, int(c.keys[i]))
	largest := math.Inf(-1)
	for j := range c.keys[i] {
		if (a.Causal && j > pos) || (a.Window > 0 && pos-j >= a.Window) {
			continue
		}
		dot := 0.0
		for x := range a.KeySize {
			dot += c.q[i][(r*a.Heads+h)*a.KeySize+x] * c.k[i][(j*a.KeyHeads+kh)*a.KeySize+x]
		}
		s[j] = dot * float64(a.QScale) * float64(a.QKScale)
		if c.score != nil {
			s[j] = c.score(dot, i, h, r, j)
		}
		if c.mask != nil {
			s[j] += c.mask[r*a.Mask.Cols+j]
		}
		largest = math.Max(largest, s[j])
	}
	if math.IsInf(largest, -1) {
		return out
	}
	total := 0.0
	for j := range s {
		s[j] = math.Exp(s[j] - largest)
		total += s[j]
	}
	for j := range s {
		w := s[j] / total
		if c.weigh != nil {
			w = c.weigh(w, 1/total, h)
		}
		for x := range out {
			if s[j] != 0 {
				out[x] += w * c.v[i][(int64(j)*a.KeyHeads+kh)*a.ValueSize+int64(x)]
			}
		}
	}
	return out
}
