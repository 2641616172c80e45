package attention

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/tensor"
)

// selfData is a call of a self attention with its logical data: what the
// operands mean, apart from how they lie in memory.
type selfData struct {
	spec  SelfAttention
	dtype tensor.DType
	maskT tensor.DType
	// rows and keys are the lengths of the sequences.
	rows, keys []int64
	dk, dv     int64
	// lead chooses the leading dimensions of a plain mask: "", "b", "h", "bh",
	// "b1", "11" or "1h"; oneRow gives it a single row, short takes as many rows
	// off its side.
	lead   string
	oneRow bool
	short  int64
	// side is the side of a compressed mask, perHead gives it heads.
	side    int64
	perHead bool
	// queryRank is the rank of packed queries, pair gives key lengths too.
	queryRank int
	pair      bool
	status    []int32
	// maskValue draws a value of a plain mask.
	maskValue func(rng *rand.Rand) float64

	rng *rand.Rand
	// q, k and v hold the rows of each sequence, [rows][heads][d].
	q, k, v                      [][]float64
	mask, slopes, logN           []float64
	keyScale, valueScale, pScale []float64
	slots, layers, layer         int64

	in   []tensor.Desc
	data [][]byte
}

func newSelfData(spec SelfAttention, seed uint64) *selfData {
	d := &selfData{
		spec: spec, dtype: tensor.Float32, rng: rand.New(rand.NewPCG(seed, 42)),
		rows: []int64{2, 0, 3}, keys: []int64{5, 2, 3}, dk: 8, dv: 6, side: 4, queryRank: 2, layers: 2, layer: 1,
		status: []int32{1, 1, 0},
	}
	d.maskT = d.dtype
	if spec.InputLayout == LayoutBNSD {
		d.dv = d.dk
	}
	if spec.MLAVHeadSize > 0 {
		d.dk, d.dv = 12, int64(spec.MLAVHeadSize)
	}
	if spec.CalcType == SelfPAEncoder {
		d.keys = slices.Clone(d.rows)
	}
	if spec.CalcType == SelfPrefixEncoder {
		d.dv = d.dk // the output has the query's descriptor
	}
	d.maskValue = func(rng *rand.Rand) float64 {
		return []float64{0, 0, math.Inf(-1), -10000, rng.Float64()*2 - 1.5}[rng.IntN(5)]
	}
	return d
}

func (d *selfData) heads() int64    { return int64(d.spec.HeadNum) }
func (d *selfData) keyHeads() int64 { return d.spec.keyHeads() }
func (d *selfData) batch() int64    { return int64(len(d.rows)) }

// runs reports whether sequence i is not skipped.
func (d *selfData) runs(i int) bool {
	return !d.spec.cached() || !d.spec.BatchRunStatusEnable || d.status[i] != 0
}

// round rounds v to a type.
func round(v float64, t tensor.DType) float64 {
	switch t {
	case tensor.Float16:
		return float64(tensor.F16From(float32(v)).Float32())
	case tensor.BFloat16:
		return float64(tensor.BF16From(float32(v)).Float32())
	}
	return float64(float32(v))
}

// encode stores values in a type.
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

func (d *selfData) put(port int, desc tensor.Desc, values []float64) {
	if port != absent {
		d.in[port], d.data[port] = desc, encode(values, desc.DType)
	}
}

func (d *selfData) putInts(port int, desc tensor.Desc, values []int64) {
	if port == absent {
		return
	}
	v := make([]int32, len(values))
	for i := range v {
		v[i] = int32(values[i])
	}
	d.in[port], d.data[port] = desc, device.BytesOf(v)
}

// nans makes n elements that must not be read: NaN, or -128 for int8.
func (d *selfData) nans(n int64) []float64 {
	poison := math.NaN()
	if d.rowType() == tensor.Int8 {
		poison = -128
	}
	return slices.Repeat([]float64{poison}, int(n))
}

// rowType is the type of queries, keys and values.
func (d *selfData) rowType() tensor.DType {
	if d.spec.QuantType != QuantNone {
		return tensor.Int8
	}
	return d.dtype
}

// draw makes n random elements of the row type.
func (d *selfData) draw(n int64) []float64 {
	out := make([]float64, n)
	for i := range out {
		if d.rowType() == tensor.Int8 {
			out[i] = float64(d.rng.IntN(41) - 20)
		} else {
			out[i] = round(d.rng.Float64()*2-1, d.dtype)
		}
	}
	return out
}

// build draws the logical data and lays the operands out.
func (d *selfData) build() *selfData {
	p := d.spec.ports()
	d.in, d.data = make([]tensor.Desc, p.count), make([][]byte, p.count)
	for i := range d.rows {
		d.q = append(d.q, d.draw(d.rows[i]*d.heads()*d.dk))
		d.k = append(d.k, d.draw(d.keys[i]*d.keyHeads()*d.dk))
		d.v = append(d.v, d.draw(d.keys[i]*d.keyHeads()*d.dv))
		if d.spec.MLAVHeadSize > 0 {
			for j := range d.v[i] {
				row, c := int64(j)/d.dv, int64(j)%d.dv
				d.v[i][j] = d.k[i][row*d.dk+c]
			}
		}
	}
	d.layQuery(&p)
	switch {
	case d.spec.CalcType == SelfPAEncoder:
		d.layTokens(&p)
	case d.spec.CalcType == SelfPrefixEncoder:
		d.layPages(&p)
	default:
		d.layCache(&p)
	}
	d.layMask(&p)
	d.layFactors(&p)
	return d
}

// pack joins the rows of all sequences and adds two that nobody owns.
func (d *selfData) pack(rows [][]float64, width int64) ([]float64, int64) {
	all := slices.Concat(rows...)
	all = append(all, d.nans(2*width)...)
	return all, int64(len(all)) / width
}

// pad lays sequences out as [b,heads,s,d].
func (d *selfData) pad(rows [][]float64, s, heads, size int64) []float64 {
	all := d.nans(int64(len(rows)) * heads * s * size)
	for i, x := range rows {
		for at := range int64(len(x)) / size {
			r, h := at/heads, at%heads
			copy(all[((int64(i)*heads+h)*s+r)*size:], x[at*size:(at+1)*size])
		}
	}
	return all
}

func (d *selfData) layQuery(p *selfPorts) {
	t := d.rowType()
	if d.spec.InputLayout == LayoutBNSD {
		s := slices.Max(d.rows) + 1
		d.put(p.query, tensor.Of(t, d.batch(), d.heads(), s, d.dk), d.pad(d.q, s, d.heads(), d.dk))
		return
	}
	all, n := d.pack(d.q, d.heads()*d.dk)
	d.put(p.query, d.packedDesc(t, n, d.heads(), d.dk), all)
}

// packedDesc describes n rows in the rank of the queries.
func (d *selfData) packedDesc(t tensor.DType, n, heads, size int64) tensor.Desc {
	switch d.queryRank {
	case 3:
		return tensor.Of(t, n, heads, size)
	case 4:
		return tensor.Of(t, 1, n, heads, size)
	}
	return tensor.Of(t, n, heads*size)
}

func (d *selfData) layTokens(p *selfPorts) {
	t := d.rowType()
	lens, desc := d.rows, tensor.Of(tensor.Int32, d.batch())
	if d.pair {
		lens, desc = slices.Concat(d.rows, d.keys), tensor.Of(tensor.Int32, 2, d.batch())
	}
	d.putInts(p.seqLen, desc, lens)
	if d.spec.InputLayout == LayoutBNSD {
		s := slices.Max(d.keys) + 2
		d.put(p.value, tensor.Of(t, d.batch(), d.keyHeads(), s, d.dv), d.pad(d.v, s, d.keyHeads(), d.dv))
		d.put(p.key, tensor.Of(t, d.batch(), d.keyHeads(), s, d.dk), d.pad(d.k, s, d.keyHeads(), d.dk))
		return
	}
	v, n := d.pack(d.v, d.keyHeads()*d.dv)
	d.put(p.value, d.packedDesc(t, n, d.keyHeads(), d.dv), v)
	k, n := d.pack(d.k, d.keyHeads()*d.dk)
	d.put(p.key, d.packedDesc(t, n, d.keyHeads(), d.dk), k)
}

// layPages scatters the keys over blocks of three in a random order.
func (d *selfData) layPages(p *selfPorts) {
	const size = 3
	columns := max((slices.Max(d.keys)+size-1)/size, 1)
	blocks := columns*d.batch() + 2
	order := d.rng.Perm(int(blocks))
	kRow, vRow := d.keyHeads()*d.dk, d.keyHeads()*d.dv
	k, v := d.nans(blocks*size*kRow), d.nans(blocks*size*vRow)
	table := slices.Repeat([]int64{-1}, int(columns*d.batch()))
	for i := range d.rows {
		for j := range d.keys[i] {
			at := int64(i)*columns + j/size
			table[at] = int64(order[at])
			slot := table[at]*size + j%size
			copy(k[slot*kRow:], d.k[i][j*kRow:(j+1)*kRow])
			copy(v[slot*vRow:], d.v[i][j*vRow:(j+1)*vRow])
		}
	}
	d.put(p.key, tensor.Of(d.dtype, blocks, size, d.keyHeads(), d.dk), k)
	d.put(p.value, tensor.Of(d.dtype, blocks, size, d.keyHeads(), d.dv), v)
	d.putInts(p.table, tensor.Of(tensor.Int32, d.batch(), columns), table)
	d.putInts(p.seqLen, tensor.Of(tensor.Int32, d.batch()), d.rows)
	d.putInts(p.keySeqLen, tensor.Of(tensor.Int32, d.batch()), d.keys)
}

func (d *selfData) layCache(p *selfPorts) {
	d.slots = slices.Max(d.keys) + 2
	if d.spec.CacheType == CacheSWA {
		d.slots = int64(d.spec.WindowSize)
		if d.spec.bypass() {
			d.slots += slices.Max(d.rows)
		}
	}
	lens := tensor.Of(tensor.Int32, d.batch())
	d.putInts(p.offset, lens, d.keys)
	d.putInts(p.seqLen, lens, d.rows)
	d.putInts(p.layer, tensor.Of(tensor.Int32, 1), []int64{d.layer})
	if p.status != absent {
		d.in[p.status], d.data[p.status] = lens, device.BytesOf(d.status)
	}
	d.put(p.key, d.cacheDesc(d.dk), d.cacheRows(d.k, d.dk, d.spec.bypass()))
	d.put(p.value, d.cacheDesc(d.dv), d.cacheRows(d.v, d.dv, d.spec.bypass()))
	if p.newKey == absent {
		return
	}
	for _, x := range []struct {
		port int
		rows [][]float64
		size int64
	}{{p.newKey, d.k, d.dk}, {p.newValue, d.v, d.dv}} {
		var fresh [][]float64
		for i := range x.rows {
			fresh = append(fresh, x.rows[i][(d.keys[i]-d.rows[i])*d.keyHeads()*x.size:])
		}
		all, n := d.pack(fresh, d.keyHeads()*x.size)
		d.put(x.port, d.packedDesc(d.dtype, n, d.keyHeads(), x.size), all)
	}
}

func (d *selfData) cacheDesc(size int64) tensor.Desc {
	switch {
	case d.spec.InputLayout == LayoutBNSD:
		return tensor.Of(d.dtype, d.layers, d.batch(), d.keyHeads(), d.slots, size)
	case d.spec.BatchRunStatusEnable:
		return tensor.Of(d.dtype, d.batch(), d.slots, d.keyHeads()*size)
	}
	return tensor.Of(d.dtype, d.layers, d.batch(), d.slots, d.keyHeads()*size)
}

// cacheRows lays a cache out that holds all rows, or those before the new ones;
// a row that is overwritten leaves the later one.
func (d *selfData) cacheRows(rows [][]float64, size int64, all bool) []float64 {
	layer := d.layer
	if d.spec.BatchRunStatusEnable && d.spec.InputLayout == LayoutBSND {
		layer = 0
	}
	n := d.cacheDesc(size)
	out, heads := d.nans(n.Numel()), d.keyHeads()
	for i, x := range rows {
		last := d.keys[i]
		if !all || !d.runs(i) {
			last -= d.rows[i]
		}
		for j := range last {
			for h := range heads {
				b := layer*d.batch() + int64(i)
				at := ((b*d.slots+j%d.slots)*heads + h) * size
				if d.spec.InputLayout == LayoutBNSD {
					at = ((b*heads+h)*d.slots + j%d.slots) * size
				}
				copy(out[at:at+size], x[(j*heads+h)*size:])
			}
		}
	}
	return out
}

// run runs the call and returns the output as float64.
func (d *selfData) run(t testing.TB, profile *operation.Profile) ([]float64, optest.Result) {
	t.Helper()
	res := optest.Run(t, optest.Case{Spec: d.spec, Profile: profile, In: d.in, Data: d.data})
	out, err := operation.InferShape(d.spec, operation.Native(), d.in)
	require.NoError(t, err)
	return floatsOf(res.Out[0], out[0].DType), res
}
