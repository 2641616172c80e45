package conformance

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"goatb/device"
	"goatb/internal/conformance/reference"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// filler writes one input's data.
type filler func(rng *rand.Rand, t *Tensor)

// inputs makes the data of a row: what the row says, or what its operation
// needs where the row leaves it to a generator.
type inputs struct {
	seed  uint64
	descs []tensor.Desc
	fill  []filler
	data  []Tensor
	// ownOutputs says that the row's outputs do not belong to these inputs:
	// take what InferShape returns.
	ownOutputs bool
	param      []byte
	// succeeds says that the row wants results: a generator may give it other
	// shapes then, where the row's text does not fit together.
	succeeds bool
}

// newInputs plans the data of a row.
func newInputs(row *Row) (*inputs, error) {
	descs, err := row.operands("In")
	if err != nil {
		return nil, err
	}
	fills, err := row.fills(len(descs))
	if err != nil {
		return nil, err
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", row.Suite, row.Index)
	in := &inputs{seed: h.Sum64(), descs: descs, data: make([]Tensor, len(descs)), param: []byte(row.Field("OpParam"))}
	in.succeeds = row.Field("ExpectedError") == status.OK.String()
	custom := false
	for _, f := range fills {
		in.fill = append(in.fill, f.filler())
		custom = custom || f.kind == fillCustom
	}
	if g := generators[row.Op()]; custom && g != nil {
		g(in, fills)
	}
	return in, nil
}

// bytes is the size of all inputs, 0 when one of them has no size.
func (in *inputs) bytes() int64 {
	n := int64(0)
	for i := range in.descs {
		d := &in.descs[i]
		if b := d.Bytes(); b > 0 && n < 1<<50 {
			n += b
		}
	}
	return n
}

// tensor returns input i with its data, which are made once.
func (in *inputs) tensor(i int) Tensor {
	t := &in.data[i]
	if t.Data == nil && in.descs[i].Bytes() > 0 {
		*t = reference.Zeros(in.descs[i])
		in.fill[i](rand.New(rand.NewPCG(in.seed, uint64(i))), t)
	}
	t.Desc = in.descs[i]
	return *t
}

// filler returns the generator of the row's kind.
func (f fill) filler() filler {
	switch f.kind {
	case fillZero:
		return constant(0)
	case fillOne:
		return constant(1)
	}
	return uniform(f.low, f.high)
}

// constant sets every element to v.
func constant(v float32) filler {
	return floats(func(*rand.Rand) float32 { return v })
}

// uniform draws (high-low)*U+low in float32 and converts it, towards zero for
// integers.
func uniform(low, high float64) filler { return floats(uniformDraw(low, high)) }

func uniformDraw(low, high float64) func(rng *rand.Rand) float32 {
	width, base := float32(high-low), float32(low)
	return func(rng *rand.Rand) float32 { return width*rng.Float32() + base }
}

// floats draws every element and converts it to the tensor's type.
func floats(draw func(rng *rand.Rand) float32) filler {
	return func(rng *rand.Rand, t *Tensor) {
		switch t.Desc.DType {
		case tensor.Float16, tensor.BFloat16, tensor.Float32:
			v := make([]float32, t.Desc.Numel())
			for i := range v {
				v[i] = draw(rng)
			}
			kernel.StoreFloats(t.Data, v, t.Desc.DType)
		case tensor.Float64:
			for i := range t.Desc.Numel() {
				device.View[float64](t.Data)[i] = float64(draw(rng))
			}
		case tensor.Bool:
			for i := range t.Data {
				if draw(rng) != 0 {
					t.Data[i] = 1
				}
			}
		default:
			setInts(t, func(int) int64 { return int64(draw(rng)) })
		}
	}
}

// integers sets element i of an integer tensor to v[i].
func integers(v []int64) filler {
	return func(_ *rand.Rand, t *Tensor) { setInts(t, func(i int) int64 { return v[i%len(v)] }) }
}

// setInts stores integers in any integer type.
func setInts(t *Tensor, f func(i int) int64) {
	n := int(t.Desc.Numel())
	switch t.Desc.DType {
	case tensor.Int8:
		store(device.View[int8](t.Data)[:n], f)
	case tensor.Uint8, tensor.Bool:
		store(t.Data[:n], f)
	case tensor.Int16, tensor.Uint16:
		store(device.View[int16](t.Data)[:n], f)
	case tensor.Int32, tensor.Uint32:
		store(device.View[int32](t.Data)[:n], f)
	case tensor.Int64, tensor.Uint64:
		store(device.View[int64](t.Data)[:n], f)
	}
}

func store[T int8 | uint8 | int16 | int32 | int64](v []T, f func(i int) int64) {
	for i := range v {
		v[i] = T(f(i))
	}
}

// decodeParam reads JSON parameters for a generator; what does not fit keeps
// its default, the operation itself reports it.
func decodeParam[P any](in *inputs, p P) P {
	q := p
	if json.Unmarshal(in.param, &q) != nil {
		return p
	}
	return q
}
