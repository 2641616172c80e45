package softmax

import (
	"goatb/device"
	"goatb/internal/vec"
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
		return int64(columnBlocks(p, v)) * columnElements(p.In[0].DType, v) * 4
	},
	Tile: func(p *kernel.Problem, v View, t *tiling, _ []int64) (kernel.Grid, error) {
		t.Outer, t.Length, t.Inner = v.Outer, v.Length, v.Inner
		t.Group = group(v)
		t.Groups = (v.Inner + t.Group - 1) / t.Group
		t.Pitch, t.DType = pitch(v.Length), p.In[0].DType
		return kernel.Grid{Blocks: columnBlocks(p, v)}, nil
	},
	Run: func(a *kernel.Args, block int, t *tiling, _ []int64) error {
		each := columnElements(t.DType, View{t.Outer, t.Length, t.Inner})
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

// columnElements is the scratch of a block: a group of columns as rows and, for
// 16-bit types, the group in float32.
func columnElements(t tensor.DType, v View) int64 {
	n := group(v) * pitch(v.Length)
	if t != tensor.Float32 {
		n += group(v) * v.Length
	}
	return n
}

func columnBlocks(p *kernel.Problem, v View) int {
	g := group(v)
	return kernel.BlocksFor(p.Machine, v.Outer*((v.Inner+g-1)/g), float64(p.In[0].Numel())*(nanosPerElement()+1))
}

// runColumns does n columns that start at dst and src.
func runColumns(dst, src []byte, buf []float32, t *tiling, n int64) {
	rows, turned := int(t.Length), buf[:t.Group*t.Pitch]
	stride, width, pitch := t.Inner*t.DType.Size(), n*t.DType.Size(), int(4*t.Pitch)
	if t.DType == tensor.Float32 {
		vec.Turn(4, device.BytesOf(turned), src, pitch, int(stride), int(n), rows)
	} else {
		lines := buf[t.Group*t.Pitch:][:n*t.Length]
		for r := range t.Length {
			kernel.LoadFloats(lines[r*n:(r+1)*n], src[r*stride:r*stride+width], t.DType)
		}
		vec.Turn(4, device.BytesOf(turned), device.BytesOf(lines), pitch, int(4*n), int(n), rows)
	}
	for c := range n {
		row := turned[c*t.Pitch:][:t.Length]
		finish(floats.F32, device.BytesOf(row), device.BytesOf(row), row)
	}
	if t.DType == tensor.Float32 {
		vec.Turn(4, dst, device.BytesOf(turned), int(stride), pitch, rows, int(n))
		return
	}
	lines := buf[t.Group*t.Pitch:][:n*t.Length]
	vec.Turn(4, device.BytesOf(lines), device.BytesOf(turned), int(4*n), pitch, rows, int(n))
	for r := range t.Length {
		kernel.StoreFloats(dst[r*stride:r*stride+width], lines[r*n:(r+1)*n], t.DType)
	}
}
