package matmul

import (
	"encoding/binary"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Int4Params of int4 weights and products with them.
type Int4Params struct {
	// Columns is N.
	Columns int64
}

// maxGroup bounds the elements of K that share a scale, so that sums of their
// products stay within int32.
const maxGroup = 8192

// Int4Pack holds the kernels that pack int4 weights: W is uint8 [n,k/2], two
// elements in a byte, the first one in its low half, in two's complement; Scale
// is [n,groups] of a float type. The output is Int4Panels.
var Int4Pack = kernel.Table{int4PackGo}

// int4Layout measures panels of int4 weights.
type int4Layout struct {
	Columns, K, Group, Groups int64
	Panels                    int64
	// ScaleBytes is the size of a scale, GroupBytes that of a group of 32
	// columns and its scales, PanelBytes that of a panel.
	ScaleBytes, GroupBytes, PanelBytes int64
}

// octetBytes is the size of eight elements of 32 columns.
const octetBytes = 128

// layout measures weights over k elements in groups, with scales of a size.
// Errors are ErrInvalidParam.
func (p Int4Params) layout(k, groups, scaleBytes int64) (int4Layout, error) {
	l := int4Layout{Columns: p.Columns, K: k, Groups: groups, ScaleBytes: scaleBytes}
	if p.Columns < 1 || p.Columns > tensor.MaxBytes || k < 1 || k > tensor.MaxBytes || groups < 1 || k%groups != 0 {
		return l, status.Errorf(status.ErrInvalidParam, "want at least one column and a K of whole groups, got %d columns and K %d of %d groups", p.Columns, k, groups)
	}
	l.Group = k / groups
	if l.Group%8 != 0 || l.Group > maxGroup {
		return l, status.Errorf(status.ErrInvalidParam, "want groups of a multiple of 8 elements up to %d, got %d", maxGroup, l.Group)
	}
	l.Panels = ceilDiv(p.Columns, gemm.PanelColumns)
	l.GroupBytes = gemm.PanelColumns*scaleBytes + l.Group/8*octetBytes
	l.PanelBytes = groups * l.GroupBytes
	return l, nil
}

// scaleBytes returns the size that scales of a type are packed in.
func scaleBytes(t tensor.DType) int64 {
	if t == tensor.Float16 {
		return 2
	}
	return 4
}

// Int4Panels describes packed int4 weights over k elements in groups, with scales
// of type t, f32, f16 or bf16: uint8 [panels, groups, bytes of a group]. Errors are
// ErrInvalidParam.
func Int4Panels(p Int4Params, k, groups int64, t tensor.DType) (tensor.Desc, error) {
	l, err := p.layout(k, groups, scaleBytes(t))
	if err != nil {
		return tensor.Desc{}, err
	}
	d := l.desc()
	if d.Bytes() == 0 {
		return d, status.Errorf(status.ErrInvalidParam, "want weights with a size, got %s", &d)
	}
	return d, nil
}

func (l *int4Layout) desc() tensor.Desc {
	return tensor.Of(tensor.Uint8, l.Panels, l.Groups, l.GroupBytes)
}

type int4PackTiling struct {
	int4Layout
	Scale tensor.DType
}

var int4PackGo = kernel.Define(kernel.Def[Int4Params, int4PackTiling]{
	Name:  "matmul/pack-int4",
	Class: device.Move,
	Supports: func(p *kernel.Problem, a Int4Params) error {
		var t int4PackTiling
		return planInt4Pack(p, a, &t)
	},
	Tile: func(p *kernel.Problem, a Int4Params, t *int4PackTiling, _ []int64) (kernel.Grid, error) {
		err := planInt4Pack(p, a, t)
		nanos := float64(t.Columns) * float64(t.K) * nanosPerPacked
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.Panels, nanos)}, err
	},
	Run: runInt4Pack,
	Cost: func(t *int4PackTiling, _ []int64) (int64, int64) {
		return 0, saturate(2 * float64(t.Panels) * float64(t.PanelBytes))
	},
})

func planInt4Pack(p *kernel.Problem, a Int4Params, t *int4PackTiling) error {
	if err := wantArity(p); err != nil {
		return err
	}
	if err := wantAbsent(p, X, Bias, TokenScale, Acc); err != nil {
		return err
	}
	w, scale := &p.In[W], &p.In[Scale]
	if w.DType != tensor.Uint8 || w.Rank() != 2 || w.Bytes() == 0 || w.Dim(0) != a.Columns || !isFloat(scale.DType) {
		return status.Errorf(status.ErrInvalidParam, "want uint8 weights of %d columns and float scales, got %s and %s", a.Columns, w, scale)
	}
	if scale.Rank() != 2 || scale.Dim(0) != a.Columns {
		return status.Errorf(status.ErrInvalidParam, "want scales [%d, groups], got %s", a.Columns, scale)
	}
	l, err := a.layout(2*w.Dim(1), scale.Dim(1), scaleBytes(scale.DType))
	if err != nil {
		return err
	}
	if want := l.desc(); p.Out[0] != want || want.Bytes() == 0 {
		return status.Errorf(status.ErrInvalidParam, "want an output %s, got %s", &want, &p.Out[0])
	}
	t.int4Layout, t.Scale = l, scale.DType
	return nil
}

func runInt4Pack(a *kernel.Args, block int, t *int4PackTiling, _ []int64) error {
	src, scales, dst := a.Mem(W), a.Mem(Scale), a.Mem(Inputs)
	lo, hi := kernel.Share(t.Panels, block, a.Blocks)
	for panel := lo; panel < hi; panel++ {
		for g := range t.Groups {
			group := dst[panel*t.PanelBytes+g*t.GroupBytes:][:t.GroupBytes]
			clear(group)
			for j := range min(gemm.PanelColumns, t.Columns-panel*gemm.PanelColumns) {
				r := panel*gemm.PanelColumns + j
				t.packScale(group[j*t.ScaleBytes:], scales, r*t.Groups+g)
				row := src[(r*t.K+g*t.Group)/2:][:t.Group/2]
				for o := range t.Group / 8 {
					packOctet(group[gemm.PanelColumns*t.ScaleBytes+o*octetBytes+4*j:], row[4*o:])
				}
			}
		}
	}
	return nil
}

// packScale stores scale number i.
func (t *int4PackTiling) packScale(dst, scales []byte, i int64) {
	if t.Scale == tensor.Float16 {
		copy(dst[:2], scales[2*i:])
		return
	}
	var f [1]float32
	kernel.LoadFloats(f[:], scales[i*t.Scale.Size():], t.Scale)
	copy(dst[:4], device.BytesOf(f[:]))
}

// packOctet stores the eight elements in four bytes as two words, the even and
// the odd ones.
func packOctet(dst, src []byte) {
	var even, odd uint16
	for i, b := range src[:4] {
		even |= uint16(b&15) << (4 * i)
		odd |= uint16(b>>4) << (4 * i)
	}
	binary.LittleEndian.PutUint16(dst, even)
	binary.LittleEndian.PutUint16(dst[2:], odd)
}
