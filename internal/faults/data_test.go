package faults_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"goatb/atb"
	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// operand is what a tensor will hold, before there is a context. The zero
// operand is an absent tensor.
type operand struct {
	desc atb.Desc
	data []byte
	// host says that the values are on the host alone.
	host bool
}

func (o *operand) absent() bool { return o.desc.Empty() }

var nan, inf = math.NaN(), math.Inf(1)

// f32 makes a float32 operand.
func f32(v []float64, dims ...int64) operand { return floats(tensor.Float32, v, dims...) }

// floats makes an operand of a float type, rounding once.
func floats(t atb.DType, v []float64, dims ...int64) operand {
	d := tensor.Of(t, dims...)
	if int64(len(v)) != d.Numel() {
		panic(fmt.Sprintf("%d values for %s", len(v), d))
	}
	single := make([]float32, len(v))
	for i, x := range v {
		single[i] = float32(x)
	}
	o := operand{desc: d, data: device.BytesOf(make([]uint64, (d.Bytes()+7)/8))[:d.Bytes()]}
	kernel.StoreFloats(o.data, single, t)
	return o
}

// ints makes an operand of an integer type; without dimensions it has rank 1.
func ints[T int8 | int32 | int64 | uint32](v []T, dims ...int64) operand {
	if len(dims) == 0 {
		dims = []int64{int64(len(v))}
	}
	t := map[any]atb.DType{int8(0): tensor.Int8, int32(0): tensor.Int32, int64(0): tensor.Int64, uint32(0): tensor.Uint32}[any(T(0))]
	return operand{desc: tensor.Of(t, dims...), data: device.BytesOf(slices.Clone(v))}
}

// lengths makes int32 values on the host.
func lengths(v ...int32) operand {
	o := ints(v)
	o.host = true
	return o
}

// values returns the operand's elements.
func (o *operand) values() []float64 { return decode(o.desc, o.data) }

// valuesOf returns the elements of a float or integer tensor.
func valuesOf(x atb.Tensor) []float64 { return decode(x.Desc, x.Data.Bytes()) }

func decode(d atb.Desc, b []byte) []float64 {
	n := d.Numel()
	out := make([]float64, n)
	if d.DType.IsFloat() {
		single := make([]float32, n)
		kernel.LoadFloats(single, b, d.DType)
		for i, v := range single {
			out[i] = float64(v)
		}
		return out
	}
	switch d.DType {
	case tensor.Int8:
		return widen(out, device.View[int8](b))
	case tensor.Int32:
		return widen(out, device.View[int32](b))
	}
	panic("values of " + d.String())
}

func widen[T int8 | int32](out []float64, in []T) []float64 {
	for i, v := range in {
		out[i] = float64(v)
	}
	return out
}

// normals draws n numbers that float16 and bfloat16 hold exactly.
func normals(rng *rand.Rand, n int64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Round(max(-4, min(4, rng.NormFloat64()))*16) / 16
	}
	return v
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 2026)) }

// repeat returns n times v.
func repeat(v float64, n int64) []float64 { return slices.Repeat([]float64{v}, int(n)) }

// counting returns 0, 1, 2, ...
func counting(n int64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i)
	}
	return v
}

// softmaxOf is the softmax of scores; rows that hold nothing but -Inf give
// zeros.
func softmaxOf(scores []float64) []float64 {
	p := make([]float64, len(scores))
	top, sum := math.Inf(-1), 0.0
	for _, s := range scores {
		top = max(top, s)
	}
	if math.IsInf(top, -1) {
		return p
	}
	for i, s := range scores {
		p[i] = math.Exp(s - top)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// mix is the sum of rows of a value matrix, weighted.
func mix(weights []float64, values [][]float64) []float64 {
	out := make([]float64, len(values[0]))
	for j, w := range weights {
		for i := range out {
			if w != 0 {
				out[i] += w * values[j][i]
			}
		}
	}
	return out
}

// attend is the attention of one query over keys and values; bias may be nil.
func attend(q []float64, keys, values [][]float64, scale float64, bias []float64) []float64 {
	if len(keys) == 0 {
		return make([]float64, len(q))
	}
	scores := make([]float64, len(keys))
	for j, k := range keys {
		for i := range q {
			scores[j] += q[i] * k[i] * scale
		}
		if bias != nil {
			scores[j] += bias[j]
		}
	}
	return mix(softmaxOf(scores), values)
}

// rowsOf cuts flat values into rows.
func rowsOf(v []float64, width int64) [][]float64 {
	var out [][]float64
	for r := range slices.Chunk(v, int(width)) {
		out = append(out, r)
	}
	return out
}

func flat(rows ...[]float64) []float64 { return slices.Concat(rows...) }

// rmsRow is a row divided by its root mean square, times gamma.
func rmsRow(row, gamma []float64, epsilon float64) []float64 {
	sum := 0.0
	for _, v := range row {
		sum += v * v
	}
	out := make([]float64, len(row))
	for i, v := range row {
		out[i] = v / math.Sqrt(sum/float64(len(row))+epsilon) * gamma[i]
	}
	return out
}

// rmsOf normalises rows as wide as gamma.
func rmsOf(x, gamma []float64, epsilon float64) []float64 {
	var out []float64
	for _, row := range rowsOf(x, int64(len(gamma))) {
		out = append(out, rmsRow(row, gamma, epsilon)...)
	}
	return out
}
