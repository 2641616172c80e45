package softmax

import (
	"goatb/device"
	"goatb/internal/vec/floats"
	"goatb/kernel"
	"goatb/tensor"
)

const (
	// maxGroup columns of float32 are a cache line.
	maxGroup = 16
	// groupElements is the scratch that a group aims at, so that it stays in
	// the second-level cache.
	groupElements = 128 << 10
	// minGroup bounds how far long columns shrink a group.
	minGroup = 4
)

// columns does slices with a stride: it turns a group of neighbouring columns
// into rows in scratch, and back.
var columns = kernel.Define(kernel.Def[View, tiling]{
	Name:     "softmax/columns",
	Class:    device.Vector,
	InPlace:  true,
	Supports: supports,
	Scratch: func(p *kernel.Problem, v View) int64 {
		return int64(columnBlocks(p, v)) * (group(v)*pitch(v.Length) + maxGroup) * 4
	},
	Tile: func(p *kernel.Problem, v View, t *tiling, _ []int64) (kernel.Grid, error) {
		t.Outer, t.Length, t.Inner = v.Outer, v.Length, v.Inner
		t.Group = group(v)
		t.Groups = (v.Inner + t.Group - 1) / t.Group
		t.Pitch, t.DType = pitch(v.Length), p.In[0].DType
		return kernel.Grid{Blocks: columnBlocks(p, v)}, nil
	},
	Run: func(a *kernel.Args, block int, t *tiling, _ []int64) error {
		each := t.Group*t.Pitch + maxGroup
		buf := device.View[float32](a.Scratch.Bytes())[int64(block)*each:][:each]
		lo, hi := kernel.Share(t.Outer*t.Groups, block, a.Blocks)
		for i := lo; i < hi; i++ {
			first := i % t.Groups * t.Group
			start := (i/t.Groups*t.Length*t.Inner + first) * t.DType.Size()
			runColumns(a.Mem(1)[start:], a.Mem(0)[start:], buf, t, min(t.Group, t.Inner-first))
		}
		return nil
	},
	Cost: cost,
})

func group(v View) int64 {
	return min(max(groupElements/v.Length, minGroup), maxGroup, v.Inner)
}

func columnBlocks(p *kernel.Problem, v View) int {
	g := group(v)
	return kernel.BlocksFor(p.Machine, v.Outer*((v.Inner+g-1)/g), float64(p.In[0].Numel())*(nanosPerElement()+1))
}

// runColumns does n columns that start at dst and src.
func runColumns(dst, src []byte, buf []float32, t *tiling, n int64) {
	line, turned := buf[:maxGroup][:n], buf[maxGroup:]
	stride, width := t.Inner*t.DType.Size(), n*t.DType.Size()
	for r := range t.Length {
		from := src[r*stride : r*stride+width]
		if t.DType == tensor.Float32 {
			line = device.View[float32](from)
		} else {
			kernel.LoadFloats(line, from, t.DType)
		}
		for c, v := range line {
			turned[int64(c)*t.Pitch+r] = v
		}
	}
	for c := range n {
		row := turned[c*t.Pitch:][:t.Length]
		finish(floats.F32, device.BytesOf(row), device.BytesOf(row), row)
	}
	line = buf[:maxGroup][:n]
	for r := range t.Length {
		for c := range line {
			line[c] = turned[int64(c)*t.Pitch+r]
		}
		kernel.StoreFloats(dst[r*stride:r*stride+width], line, t.DType)
	}
}
