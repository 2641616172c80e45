package move

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernel/kerneltest"
	"goatb/tensor"
)

// sizes has a type of every element size.
var sizes = []tensor.DType{tensor.Int8, tensor.Float16, tensor.Float32, tensor.Int64, tensor.Complex128}

// at gives the bytes of the element at a position.
func at(d *tensor.Desc, b []byte, pos []int64) []byte {
	i := int64(0)
	for k, p := range pos {
		i = i*d.Dim(k) + p
	}
	return b[i*d.DType.Size() : (i+1)*d.DType.Size()]
}

// positions calls f with every position of a shape.
func positions(s tensor.Shape, f func(pos []int64)) {
	dims := s.Dims()
	pos := make([]int64, len(dims))
	for range s.Numel() {
		f(pos)
		for k := len(dims) - 1; k >= 0; k-- {
			if pos[k]++; pos[k] < dims[k] {
				break
			}
			pos[k] = 0
		}
	}
}

// problem makes a problem without data.
func problem(params any, out []tensor.Desc, in ...tensor.Desc) kernel.Problem {
	return kernel.Problem{In: in, Out: out, Params: params}
}

// run runs every kernel of a table that takes the problem and checks that they
// agree; at least one must.
func run(t *testing.T, table kernel.Table, p kernel.Problem, in ...[]byte) [][]byte {
	t.Helper()
	var first [][]byte
	for _, k := range table {
		if k.Supports(&p) != nil {
			continue
		}
		out := kerneltest.Run(t, kerneltest.Case{Kernel: k, Problem: p, In: in})
		if first == nil {
			first = out
		}
		require.Equal(t, first, out, "%s differs from the first kernel", k.Name())
	}
	require.NotNil(t, first, "no kernel takes the problem")
	return first
}

// randomDims gives dims with a product of at most limit.
func randomDims(rng *rand.Rand, rank int, limit int64) []int64 {
	dims := make([]int64, rank)
	n := int64(1)
	for i := range dims {
		dims[i] = 1
		if room := limit / n; room > 1 && rng.IntN(4) > 0 {
			dims[i] = 1 + rng.Int64N(min(room, []int64{3, 9, 40, 300}[rng.IntN(4)]))
		}
		n *= dims[i]
	}
	return dims
}

func TestTranspose(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 75 {
		rank := 1 + rng.IntN(8)
		d := tensor.Of(sizes[i%len(sizes)], randomDims(rng, rank, 20000)...)
		var perm Perm
		out := make([]int64, rank)
		order := rng.Perm(rank)
		for j, axis := range order {
			perm.Axis[j], out[j] = int8(axis), d.Dim(axis)
		}
		o := d.WithShape(out...)
		in := randomBytes(uint64(i), d.Bytes())
		got := run(t, Transpose, problem(perm, []tensor.Desc{o}, d), in)[0]
		from := make([]int64, rank)
		positions(o.Shape, func(pos []int64) {
			for j, axis := range order {
				from[axis] = pos[j]
			}
			if string(at(&d, in, from)) != string(at(&o, got, pos)) {
				require.FailNow(t, "wrong element", "%s perm %v at %v", d, order, pos)
			}
		})
	}
}

func TestTransposeChoosesByLastAxis(t *testing.T) {
	d := tensor.Of(tensor.Float16, 4, 6, 8)
	for _, c := range []struct {
		perm [8]int8
		want string
	}{
		{[8]int8{0, 2, 1}, "transpose/tiles"},
		{[8]int8{2, 0, 1}, "transpose/tiles"},
		{[8]int8{1, 0, 2}, "transpose/rows"},
		{[8]int8{0, 1, 2}, "transpose/rows"},
	} {
		var out []int64
		for _, axis := range c.perm[:3] {
			out = append(out, d.Dim(int(axis)))
		}
		p := problem(Perm{c.perm}, []tensor.Desc{d.WithShape(out...)}, d)
		k, _, err := Transpose.Select(&p, kernel.Filter{})
		require.NoError(t, err)
		assert.Equal(t, c.want, k.Name(), "%v", c.perm)
	}
}

func TestTransposeRefuses(t *testing.T) {
	d := tensor.Of(tensor.Float16, 4, 6)
	for _, c := range []struct {
		out  tensor.Desc
		perm [8]int8
	}{
		{d, [8]int8{0, 0}}, {d, [8]int8{0, 2}}, {d, [8]int8{-1, 0}},
		{tensor.Of(tensor.Float32, 6, 4), [8]int8{1, 0}}, {tensor.Of(tensor.Float16, 6, 5), [8]int8{1, 0}},
	} {
		p := problem(Perm{c.perm}, []tensor.Desc{c.out}, d)
		_, _, err := Transpose.Select(&p, kernel.Filter{})
		assert.Error(t, err, "%v %s", c.perm, c.out)
	}
}

// pieceCases are wholes with the sizes of their pieces along an axis.
var pieceCases = []struct {
	dims  []int64
	axis  int64
	sizes []int64
}{
	{[]int64{7}, 0, []int64{3, 4}},
	{[]int64{5, 4}, 0, []int64{2, 3}},
	{[]int64{5, 4}, 1, []int64{1, 3}},
	{[]int64{500, 2}, 1, []int64{1, 1}},
	{[]int64{3, 9, 5}, 1, []int64{2, 3, 4}},
	{[]int64{2, 3, 2, 8}, 3, []int64{2, 2, 1, 3}},
	{[]int64{1, 6000}, 1, []int64{1999, 1, 4000}},
	{[]int64{3, 30000}, 1, []int64{10000, 20000}},
	{[]int64{6, 2, 3, 2, 1, 2, 2, 2}, 0, []int64{2, 4}},
	{[]int64{4, 3}, 1, []int64{3}},
}

func TestJoinAndSplit(t *testing.T) {
	for i, c := range pieceCases {
		for _, dt := range sizes {
			t.Run(fmt.Sprint(dt, c.dims, c.axis), func(t *testing.T) {
				whole := tensor.Of(dt, c.dims...)
				data := randomBytes(uint64(i), whole.Bytes())
				var pieces []tensor.Desc
				var want [][]byte
				begin := int64(0)
				for _, n := range c.sizes {
					d := tensor.Desc{DType: dt, Shape: whole.Shape.With(int(c.axis), n)}
					var b []byte
					from := make([]int64, len(c.dims))
					positions(d.Shape, func(pos []int64) {
						copy(from, pos)
						from[c.axis] += begin
						b = append(b, at(&whole, data, from)...)
					})
					pieces, want, begin = append(pieces, d), append(want, b), begin+n
				}
				params := Axis{c.axis}
				assert.Equal(t, want, run(t, Split, problem(params, pieces, whole), data))
				assert.Equal(t, [][]byte{data}, run(t, Join, problem(params, []tensor.Desc{whole}, pieces...), want...))
			})
		}
	}
}

func TestJoinAndSplitRefuse(t *testing.T) {
	f := func(dims ...int64) tensor.Desc { return tensor.Of(tensor.Float16, dims...) }
	for _, c := range []struct {
		axis   int64
		whole  tensor.Desc
		pieces []tensor.Desc
	}{
		{0, f(4, 3), []tensor.Desc{f(2, 3), f(1, 3)}},
		{0, f(4, 3), []tensor.Desc{f(2, 3), f(2, 2)}},
		{0, f(4, 3), []tensor.Desc{f(2, 3), f(2)}},
		{0, f(4, 3), []tensor.Desc{f(2, 3), tensor.Of(tensor.Float32, 2, 3)}},
		{2, f(4, 3), []tensor.Desc{f(4, 3)}},
		{-1, f(4, 3), []tensor.Desc{f(4, 3)}},
		{0, f(4, 3), nil},
		{0, f(9, 1), []tensor.Desc{f(1, 1), f(1, 1), f(1, 1), f(1, 1), f(1, 1), f(1, 1), f(1, 1), f(1, 1), f(1, 1)}},
	} {
		p := problem(Axis{c.axis}, c.pieces, c.whole)
		assert.Error(t, splitRows.Supports(&p), "%v", c)
		p = problem(Axis{c.axis}, []tensor.Desc{c.whole}, c.pieces...)
		assert.Error(t, joinRows.Supports(&p), "%v", c)
	}
}

func TestWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for i := range 75 {
		rank := 1 + rng.IntN(8)
		d := tensor.Of(sizes[i%len(sizes)], randomDims(rng, rank, 20000)...)
		var box Box
		size := make([]int64, rank)
		for k := range rank {
			size[k] = d.Dim(k)
			if rng.IntN(2) > 0 {
				size[k] = 1 + rng.Int64N(d.Dim(k))
				box.From[k] = rng.Int64N(d.Dim(k) - size[k] + 1)
			}
		}
		o := d.WithShape(size...)
		in := randomBytes(uint64(i), d.Bytes())
		got := run(t, Window, problem(box, []tensor.Desc{o}, d), in)[0]
		from := make([]int64, rank)
		positions(o.Shape, func(pos []int64) {
			for k := range pos {
				from[k] = pos[k] + box.From[k]
			}
			if string(at(&d, in, from)) != string(at(&o, got, pos)) {
				require.FailNow(t, "wrong element", "%s from %v size %v at %v", d, box.From, size, pos)
			}
		})
	}
}

func TestWindowCutsLongRows(t *testing.T) {
	d, o := tensor.Of(tensor.Float32, 2, 400000), tensor.Of(tensor.Float32, 2, 300001)
	p := problem(Box{[8]int64{0, 7}}, []tensor.Desc{o}, d)
	in := randomBytes(3, d.Bytes())
	got := run(t, Window, p, in)[0]
	want := append(append([]byte{}, in[28:28+1200004]...), in[1600028:1600028+1200004]...)
	assert.Equal(t, want, got)
	p.Machine.Cores = 8
	g, err := windowRows.Tile(&p, make([]byte, windowRows.TilingSize(&p)))
	require.NoError(t, err)
	assert.Equal(t, kernel.Grid{Key: uint64(byLines), Blocks: 8}, g)
}

func TestWindowRefuses(t *testing.T) {
	d := tensor.Of(tensor.Float32, 4, 5)
	for _, c := range []struct {
		out  tensor.Desc
		from [8]int64
	}{
		{tensor.Of(tensor.Float32, 4, 2), [8]int64{0, 4}},
		{tensor.Of(tensor.Float32, 4, 2), [8]int64{0, -1}},
		{tensor.Of(tensor.Float32, 5, 2), [8]int64{}},
		{tensor.Of(tensor.Float32, 4), [8]int64{}},
		{tensor.Of(tensor.Float16, 4, 2), [8]int64{}},
		{tensor.Of(tensor.Float32, 1, 1), [8]int64{1 << 62, 0}},
	} {
		p := problem(Box{c.from}, []tensor.Desc{c.out}, d)
		assert.Error(t, windowRows.Supports(&p), "%v", c)
	}
}
