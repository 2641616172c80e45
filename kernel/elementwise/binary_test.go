package elementwise

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/tensor"
)

func TestBinaryFloat(t *testing.T) {
	refs := [numBinary]func(x, y float64) float64{
		Add: func(x, y float64) float64 { return x + y },
		Sub: func(x, y float64) float64 { return x - y },
		Mul: func(x, y float64) float64 { return x * y },
		Div: func(x, y float64) float64 { return x / y },
	}
	for _, d := range floatTypes {
		for op, ref := range refs {
			for i, c := range broadcastCases {
				out, a, b := tensor.Of(d, c.out...), tensor.Of(d, c.a...), tensor.Of(d, c.b...)
				dataA, x := normals(uint64(i), d, a.Numel(), 3)
				dataB, y := normals(uint64(i)+50, d, b.Numel(), 2)
				want := make([]float64, out.Numel())
				for j := range want {
					want[j] = ref(x[element(out.Shape, a.Shape, int64(j))], y[element(out.Shape, b.Shape, int64(j))])
				}
				p := kernel.Problem{In: []tensor.Desc{a, b}, Out: []tensor.Desc{out}, Params: BinaryParams{BinaryOp(op)}}
				got := run(t, Binary, p, [][]byte{dataA, dataB}, nil)
				// float32 arithmetic is exact to half a place; the second
				// rounding adds at most 2^-13 places.
				requireRounded(t, d, want, decode(d, got[0]), 0.001, fmt.Sprintf("op %d %s %v", op, d, c))
				if a.Shape == out.Shape {
					assert.Equal(t, got, run(t, Binary, p, [][]byte{dataA, dataB}, map[int]int{0: 0}), "in place of a")
				}
				if b.Shape == out.Shape {
					assert.Equal(t, got, run(t, Binary, p, [][]byte{dataA, dataB}, map[int]int{0: 1}), "in place of b")
				}
			}
		}
	}
}

// wrapped is the result of an operation modulo 2^64.
func wrapped(op BinaryOp, x, y uint64) uint64 {
	switch op {
	case Add:
		return x + y
	case Sub:
		return x - y
	}
	return x * y
}

// bitsAt is element i as its low bits, widened with zeros.
func bitsAt(b []byte, t tensor.DType, i int64) (v uint64) {
	for j := t.Size() - 1; j >= 0; j-- {
		v = v<<8 | uint64(b[i*t.Size()+j])
	}
	return v
}

func TestBinaryIntWraps(t *testing.T) {
	// One type of each width: signs share the loops.
	for _, d := range []tensor.DType{tensor.Int8, tensor.Uint16, tensor.Int32, tensor.Uint64} {
		mask := uint64(math.MaxUint64) >> (64 - 8*d.Size())
		for op := range Div {
			for i, c := range broadcastCases {
				out, a, b := tensor.Of(d, c.out...), tensor.Of(d, c.a...), tensor.Of(d, c.b...)
				x, y := ints(uint64(i), d, a.Numel()), ints(uint64(i)+9, d, b.Numel())
				p := kernel.Problem{In: []tensor.Desc{a, b}, Out: []tensor.Desc{out}, Params: BinaryParams{op}}
				got := run(t, Binary, p, [][]byte{x, y}, nil)[0]
				for j := range out.Numel() {
					u := bitsAt(x, d, element(out.Shape, a.Shape, j))
					v := bitsAt(y, d, element(out.Shape, b.Shape, j))
					require.Equal(t, wrapped(op, u, v)&mask, bitsAt(got, d, j), "%s op %d element %d", d, op, j)
				}
			}
		}
	}
}

func TestCompare(t *testing.T) {
	types := append(append([]tensor.DType{}, floatTypes...), intTypes...)
	for _, d := range types {
		for i, c := range broadcastCases {
			out, a, b := tensor.Of(tensor.Int8, c.out...), tensor.Of(d, c.a...), tensor.Of(d, c.b...)
			var dataA, dataB []byte
			if d.IsFloat() {
				dataA, _ = normals(uint64(i), d, a.Numel(), 1)
				dataB, _ = normals(uint64(i)+3, d, b.Numel(), 1)
			} else {
				dataA, dataB = ints(uint64(i), d, a.Numel()), ints(uint64(i)+3, d, b.Numel())
			}
			copy(dataB, dataA[:min(len(dataA), len(dataB))/2])
			x, y := decode(d, dataA), decode(d, dataB)
			for op := range numCompare {
				p := kernel.Problem{In: []tensor.Desc{a, b}, Out: []tensor.Desc{out}, Params: CompareParams{op}}
				got := run(t, Compare, p, [][]byte{dataA, dataB}, nil)[0]
				for j := range out.Numel() {
					u, v := x[element(out.Shape, a.Shape, j)], y[element(out.Shape, b.Shape, j)]
					if d.Size() == 8 && math.Abs(u-v) < 4096 {
						continue // float64 cannot tell them apart
					}
					want := [numCompare]bool{Less: u < v, Greater: u > v, Equal: u == v}[op]
					require.Equal(t, want, got[j] == 1, "%s op %d: %v and %v", d, op, u, v)
					require.LessOrEqual(t, got[j], byte(1))
				}
			}
		}
	}
}

func TestCompareWideIntegersExactly(t *testing.T) {
	in := []tensor.Desc{tensor.Of(tensor.Int64, 3), tensor.Of(tensor.Int64, 3)}
	out := []tensor.Desc{tensor.Of(tensor.Int8, 3)}
	x := make([]byte, 24)
	y := make([]byte, 24)
	x[7], y[7], y[0] = 0x40, 0x40, 1 // 2^62 and 2^62+1
	x[15], y[15] = 0x80, 0x7f        // the ends of int64
	for op, want := range map[CompareOp][]byte{Less: {1, 1, 0}, Greater: {0, 0, 0}, Equal: {0, 0, 1}} {
		p := kernel.Problem{In: in, Out: out, Params: CompareParams{op}}
		assert.Equal(t, want, run(t, Compare, p, [][]byte{x, y}, nil)[0], "op %d", op)
	}
}

func TestLogic(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Int8, tensor.Bool} {
		for i, c := range broadcastCases {
			out, a, b := tensor.Of(d, c.out...), tensor.Of(d, c.a...), tensor.Of(d, c.b...)
			x, y := ints(uint64(i), d, a.Numel()), ints(uint64(i)+7, d, b.Numel())
			for j := range x {
				x[j] &= byte(-(j & 1))
			}
			for j := range y {
				y[j] &= byte(-(j >> 1 & 1))
			}
			for op := range Not {
				p := kernel.Problem{In: []tensor.Desc{a, b}, Out: []tensor.Desc{out}, Params: LogicParams{op}}
				got := run(t, Logic, p, [][]byte{x, y}, nil)[0]
				for j := range out.Numel() {
					u, v := x[element(out.Shape, a.Shape, j)] != 0, y[element(out.Shape, b.Shape, j)] != 0
					want := [numLogic]bool{And: u && v, Or: u || v}[op]
					require.Equal(t, byte(truth(want)), got[j], "op %d element %d", op, j)
				}
			}
			p := kernel.Problem{In: []tensor.Desc{a}, Out: []tensor.Desc{a}, Params: LogicParams{Not}}
			for _, place := range []map[int]int{nil, {0: 0}} {
				got := run(t, Logic, p, [][]byte{x}, place)[0]
				for j, v := range x {
					require.Equal(t, byte(truth(v == 0)), got[j], "not, element %d", j)
				}
			}
		}
	}
}

func TestBinaryRefuses(t *testing.T) {
	d := func(t tensor.DType, dims ...int64) tensor.Desc { return tensor.Of(t, dims...) }
	for _, c := range []struct {
		table  kernel.Table
		params any
		in     []tensor.Desc
		out    tensor.Desc
	}{
		{Binary, BinaryParams{Add}, []tensor.Desc{d(tensor.Float32, 2), d(tensor.Float16, 2)}, d(tensor.Float32, 2)},
		{Binary, BinaryParams{Add}, []tensor.Desc{d(tensor.Float32, 2), d(tensor.Float32, 3)}, d(tensor.Float32, 3)},
		{Binary, BinaryParams{Add}, []tensor.Desc{d(tensor.Float32, 2), d(tensor.Float32, 2)}, d(tensor.Float32, 3)},
		{Binary, BinaryParams{Div}, []tensor.Desc{d(tensor.Int32, 2), d(tensor.Int32, 2)}, d(tensor.Int32, 2)},
		{Compare, CompareParams{Less}, []tensor.Desc{d(tensor.Int32, 2), d(tensor.Int64, 2)}, d(tensor.Int8, 2)},
		{Compare, CompareParams{Less}, []tensor.Desc{d(tensor.Int32, 2), d(tensor.Int32, 2)}, d(tensor.Int32, 2)},
		{Logic, LogicParams{And}, []tensor.Desc{d(tensor.Int8, 2)}, d(tensor.Int8, 2)},
		{Logic, LogicParams{Not}, []tensor.Desc{d(tensor.Float16, 2)}, d(tensor.Float16, 2)},
	} {
		p := kernel.Problem{In: c.in, Out: []tensor.Desc{c.out}, Params: c.params}
		_, _, err := c.table.Select(&p, kernel.Filter{})
		assert.Error(t, err, "%v -> %v", c.in, c.out)
	}
}
