package matmul

import (
	"encoding/binary"
	"math"

	"goatb/device"
	"goatb/internal/asm/gemm"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// Lookup holds the kernels that pick rows of a packed weight: X is int32 [m] with
// the numbers of rows, W a matrix of layout Panels or, with Columns, Int4Pack's
// output, Scale f32 [n] beside int8 panels, and the output [m,k] a float type:
// W's where that is one. Elements of quantised weights are multiplied with their
// scales in f32 and rounded once.
var Lookup = kernel.Table{lookupGo}

// lookupPiece is the number of elements of a row that are picked at a time.
const lookupPiece = 512

// nanosPerLookup is the price of an element that lies apart from its neighbours,
// nanosPerNibble that of one of int4, eight of which lie together.
const nanosPerLookup, nanosPerNibble = 3, 1

// lookupTiling plans the picking: items of one piece of a row.
type lookupTiling struct {
	M, N, K, Pieces int64
	W               matrix
	Int4            int4Layout
	Out             tensor.DType
}

var lookupGo = kernel.Define(kernel.Def[Int4Params, lookupTiling]{
	Name:  "matmul/lookup",
	Class: device.Move,
	Supports: func(p *kernel.Problem, a Int4Params) error {
		var t lookupTiling
		return planLookup(p, a, &t)
	},
	Tile: func(p *kernel.Problem, a Int4Params, t *lookupTiling, _ []int64) (kernel.Grid, error) {
		err := planLookup(p, a, t)
		each := float64(nanosPerLookup)
		if t.Int4.Columns > 0 {
			each = nanosPerNibble
		}
		return kernel.Grid{Blocks: kernel.BlocksFor(p.Machine, t.M*t.Pieces, float64(t.M)*float64(t.K)*each)}, err
	},
	Run: runLookup,
	Cost: func(t *lookupTiling, _ []int64) (int64, int64) {
		return 0, saturate(float64(t.M) * float64(t.K) * float64(t.Out.Size()+1))
	},
})

// planLookup checks and plans a picking.
func planLookup(p *kernel.Problem, a Int4Params, t *lookupTiling) error {
	if err := wantArity(p); err != nil {
		return err
	}
	if err := wantAbsent(p, Bias, TokenScale, Acc); err != nil {
		return err
	}
	x, w, out := &p.In[X], &p.In[W], &p.Out[0]
	if x.DType != tensor.Int32 || x.Bytes() == 0 || w.Bytes() == 0 || !isFloat(out.DType) {
		return status.Errorf(status.ErrInvalidParam, "want int32 rows of packed weights as floats, got %s of %s as %s", x, w, out)
	}
	t.M, t.Out = x.Numel(), out.DType
	var err error
	if a.Columns > 0 {
		err = t.planInt4(p, a)
	} else {
		err = t.planPanels(p)
	}
	if err == nil && out.Numel() != tensor.ShapeOf(t.M, t.K).Numel() {
		err = status.Errorf(status.ErrInvalidParam, "want an output of %d rows of %d elements, got %s", t.M, t.K, out)
	}
	t.Pieces = ceilDiv(max(t.K, 1), lookupPiece)
	return err
}

func (t *lookupTiling) planPanels(p *kernel.Problem) error {
	w, scale := &p.In[W], &p.In[Scale]
	if w.Format != tensor.Panels || w.Rank() != 2 {
		return status.Errorf(status.ErrInvalidParam, "want a matrix of layout %s, got %s", tensor.Panels, w)
	}
	var s shape
	_, t.K = s.readPanels(w)
	t.N, t.W = s.n, s.w
	switch {
	case w.DType == tensor.Int8 && (scale.DType != tensor.Float32 || scale.Numel() != t.N):
		return status.Errorf(status.ErrInvalidParam, "want %d f32 scales beside %s, got %s", t.N, w, scale)
	case w.DType != tensor.Int8 && (w.DType != t.Out || !scale.Empty()):
		return status.Errorf(status.ErrInvalidParam, "want rows of %s as %s without scales, got %s and %s", w, w.DType, t.Out, scale)
	}
	return nil
}

func (t *lookupTiling) planInt4(p *kernel.Problem, a Int4Params) error {
	w := &p.In[W]
	if err := wantAbsent(p, Scale); err != nil {
		return err
	}
	l, err := a.unpacked(w)
	t.Int4, t.N, t.K = l, l.Columns, l.K
	return err
}

// unpacked measures weights that are packed. Their bytes tell the size of scales.
func (p Int4Params) unpacked(w *tensor.Desc) (int4Layout, error) {
	if w.DType != tensor.Uint8 || w.Rank() != 3 || w.Bytes() == 0 {
		return int4Layout{}, status.Errorf(status.ErrInvalidParam, "want packed int4 weights, got %s", w)
	}
	scaleBytes := int64(4)
	if w.Dim(2)%octetBytes != 0 {
		scaleBytes = 2
	}
	group := max(w.Dim(2)-gemm.PanelColumns*scaleBytes, 0) / octetBytes * 8
	if group > maxGroup {
		return int4Layout{}, status.Errorf(status.ErrInvalidParam, "want groups of up to %d elements, got %s", maxGroup, w)
	}
	l, err := p.layout(w.Dim(1)*group, w.Dim(1), scaleBytes)
	if err == nil && l.desc() != *w {
		err = status.Errorf(status.ErrInvalidParam, "%s are not int4 weights of %d columns", w, p.Columns)
	}
	return l, err
}

// Int4Width returns K of packed int4 weights. Errors are ErrInvalidParam.
func Int4Width(p Int4Params, panels *tensor.Desc) (int64, error) {
	if err := status.Given("int4 width", "panels", panels); err != nil {
		return 0, err
	}
	l, err := p.unpacked(panels)
	return l.K, err
}

func runLookup(a *kernel.Args, block int, t *lookupTiling, _ []int64) error {
	var vals [lookupPiece]float32
	rows, w, dst := device.View[int32](a.Mem(X)), a.Mem(W), a.Mem(Inputs)
	lo, hi := kernel.Share(t.M*t.Pieces, block, a.Blocks)
	for i := lo; i < hi; i++ {
		m, k := i/t.Pieces, i%t.Pieces*lookupPiece
		r := int64(rows[m])
		if r < 0 || r >= t.N {
			return status.Errorf(status.ErrRuntimeFail, "row %d at position %d is outside 0 to %d", r, m, t.N-1).On("input 1 (indices)")
		}
		n := min(lookupPiece, t.K-k)
		out := dst[(m*t.K+k)*t.Out.Size():][:n*t.Out.Size()]
		switch {
		case t.Int4.Columns > 0:
			t.Int4.row(vals[:n], w, r, k)
		case t.W.DType == tensor.Int8:
			t.int8Row(vals[:n], w, r, k, device.View[float32](a.Mem(Scale))[r])
		default:
			t.W.copyRow(out, w, r, k)
			continue
		}
		kernel.StoreFloats(out, vals[:n], t.Out)
	}
	return nil
}

// copyRow fills dst with elements of row r from k on, a multiple of Step.
func (m *matrix) copyRow(dst, mem []byte, r, k int64) {
	run := int64(m.Step) * m.DType.Size()
	from := m.at(0, r, k)
	if run == 4 { // int8 and 16-bit panels: a call for each run takes longer
		to, words := device.View[uint32](dst), device.View[uint32](mem[from:])
		for i := range to {
			to[i] = words[int64(i)*m.Block]
		}
		dst, from = dst[4*len(to):], from+4*m.Block*int64(len(to))
	}
	for len(dst) > 0 {
		got := copy(dst[:min(int64(len(dst)), run)], mem[from:])
		dst, from = dst[got:], from+run*m.Block
	}
}

// int8Row stores elements of row r from k on times its scale.
func (t *lookupTiling) int8Row(dst []float32, mem []byte, r, k int64, scale float32) {
	var row [lookupPiece]byte // stays on the stack: functions of package vec would move it
	t.W.copyRow(row[:len(dst)], mem, r, k)
	for i := range dst {
		dst[i] = float32(int8(row[i])) * scale
	}
}

// row stores elements of row r from k on times their scales, whole octets.
func (l *int4Layout) row(dst []float32, mem []byte, r, k int64) {
	panel, column := mem[r/gemm.PanelColumns*l.PanelBytes:], r%gemm.PanelColumns
	for at := k; len(dst) > 0; {
		group, in := panel[at/l.Group*l.GroupBytes:][:l.GroupBytes], at%l.Group
		n := min(int64(len(dst)), l.Group-in)
		scale := l.scale(group, int(column))
		octets := group[gemm.PanelColumns*l.ScaleBytes+in/8*octetBytes+4*column:]
		for i := range n / 8 {
			octet(dst[8*i:], binary.LittleEndian.Uint32(octets[i*octetBytes:]), scale)
		}
		dst, at = dst[n:], at+n
	}
}

// octet stores the eight elements of a word times their scale: those at even places
// are the nibbles of its lower half, the others those of its upper half.
func octet(dst []float32, word uint32, scale float32) {
	x := (*[8]float32)(dst)
	for i := range x {
		shift := 28 - 4*(i/2) - 16*(i%2)
		x[i] = float32(int32(word<<shift)>>28) * scale
	}
}

// scale returns the scale of a column of a group.
func (l *int4Layout) scale(group []byte, column int) float32 {
	if l.ScaleBytes == 2 {
		return device.View[tensor.F16](group)[column].Float32()
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(group[4*column:]))
}
