package conformance

import (
	"math"
	"math/rand/v2"

	"goatb/tensor"
)

// generator changes the plan of a row whose data are left to its operation.
type generator func(in *inputs, fills []fill)

// generators lists the operations that need more than uniform data.
var generators = map[string]generator{
	"ElewiseOperation":         elewiseData,
	"GatherOperation":          gatherData,
	"IndexAddOperation":        indexAddData,
	"LinearOperation":          linearData,
	"PagedAttentionOperation":  pagedAttentionData,
	"ReshapeAndCacheOperation": reshapeAndCacheData,
	"SelfAttentionOperation":   selfAttentionData,
}

// elewiseData keeps the scales of a quantisation away from zero.
func elewiseData(in *inputs, fills []fill) {
	if len(in.descs) == 3 {
		low := max(fills[1].low, 0.05)
		in.fill[1] = uniform(low, max(fills[1].high, low))
	}
}

// gatherData draws indices inside the axis.
func gatherData(in *inputs, fills []fill) {
	p := decodeParam(in, struct{ Axis int }{})
	if len(in.descs) == 2 && fills[1].kind == fillCustom && p.Axis >= 0 && p.Axis < in.descs[0].Rank() {
		in.fill[1] = uniform(0, float64(in.descs[0].Dim(p.Axis)))
	}
}

// indexAddData draws indices inside the axis and makes all updates but the last few
// valid.
func indexAddData(in *inputs, fills []fill) {
	p := decodeParam(in, struct{ IndexType, Axis int }{})
	if len(in.descs) != 4 || p.Axis < -in.descs[0].Rank() || p.Axis >= in.descs[0].Rank() {
		return
	}
	if fills[1].kind == fillCustom {
		in.fill[1] = uniform(0, float64(in.descs[0].Dim(p.Axis)))
	}
	if p.IndexType == 2 && fills[3].kind == fillCustom {
		n := in.descs[1].Numel()
		in.fill[3] = integers([]int64{n - n/8})
	}
}

// grid draws multiples of 1/8: sums of some thousand products of them are exact
// in float32.
func grid(f fill) filler {
	draw := uniformDraw(f.low, f.high)
	return floats(func(rng *rand.Rand) float32 { return float32(math.Floor(float64(draw(rng))*8)) / 8 })
}

// linearData gives the scale of a quantised product the type that belongs to
// the output: float32 bits in 64-bit integers for f16, else float32. With a bias
// of a half type, before which the product is rounded, it draws x and w so that
// products are exact: whether a sum lies above or below the middle of two
// numbers must not hang on the order of summation.
func linearData(in *inputs, fills []fill) {
	p := decodeParam(in, struct {
		HasBias     bool
		OutDataType int
		QuantMode   int
	}{HasBias: true, OutDataType: -1})
	scale := 2
	if p.HasBias {
		scale = 3
	}
	if p.OutDataType == tensor.Undefined.ACL() && p.HasBias && len(in.descs) == 3 && in.descs[2].DType != tensor.Float32 {
		in.fill[0], in.fill[1] = grid(fills[0]), grid(fills[1])
	}
	if p.OutDataType == tensor.Undefined.ACL() || scale >= len(in.descs) {
		return
	}
	d := &in.descs[scale]
	if p.OutDataType != tensor.Float16.ACL() || p.QuantMode == 2 {
		d.DType = tensor.Float32
		return
	}
	if d.DType != tensor.Uint64 {
		d.DType = tensor.Int64
	}
	low, width := fills[scale].low, max(fills[scale].high-fills[scale].low, 1)
	in.fill[scale] = func(rng *rand.Rand, t *Tensor) {
		setInts(t, func(int) int64 {
			return int64(math.Float32bits(float32(math.Floor(low + width*rng.Float64()))))
		})
	}
}

// reshapeAndCacheData draws distinct slots in an empty cache.
func reshapeAndCacheData(in *inputs, _ []fill) {
	p := decodeParam(in, struct{ CompressType, KVCacheCfg int }{})
	caches, slots := []int{2, 3}, 4
	if p.KVCacheCfg == 1 {
		caches, slots = []int{1}, 2
	}
	if slots >= len(in.descs) {
		return
	}
	for _, c := range caches {
		in.fill[c] = constant(0)
	}
	cache := &in.descs[caches[0]]
	if cache.Rank() != 4 {
		return
	}
	total := cache.Dim(0) * cache.Dim(1)
	if cache.Format == tensor.FractalNZ {
		total = cache.Dim(0) * cache.Dim(2)
	}
	if p.CompressType == 0 {
		in.fill[slots] = func(_ *rand.Rand, t *Tensor) {
			setInts(t, func(i int) int64 { return spread(int64(i), total) })
		}
		return
	}
	compressedSlots(in, total)
}

// spread visits every slot once in an order that looks random: a multiple of a
// step without a common factor.
func spread(i, total int64) int64 {
	step := total*5/8 | 1
	for gcd(step, total) != 1 {
		step += 2
	}
	return i % total * step % total
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// compressedSlots lets every batch and head write its tokens to a range of
// slots of its own.
func compressedSlots(in *inputs, total int64) {
	if len(in.descs) < 7 || in.descs[0].Rank() != 3 {
		return
	}
	heads, batch := in.descs[0].Dim(1), max(in.descs[6].Numel(), 1)
	tokens := in.descs[0].Dim(0) / batch
	room := max(total/max(batch*heads, 1), 1)
	in.fill[6] = integers([]int64{tokens})
	in.fill[5] = integers([]int64{min(tokens, room) / 2})
	in.fill[4] = func(_ *rand.Rand, t *Tensor) { setInts(t, func(i int) int64 { return int64(i) * room }) }
	if len(in.descs) > 7 {
		in.fill[7] = integers([]int64{-1, 1})
	}
}
