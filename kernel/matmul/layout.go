package matmul

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
)

// panelWidth is the number of columns in a panel that plain Go packs, and of the
// groups that its row variants work in.
const panelWidth = 4

// matrix locates element (r, k) of a batch of matrices, where r counts rows of
// x or columns of w:
//
//	along K:          b*Batch + r*Lead + k
//	along R:          b*Batch + k*Lead + r
//	blocked along K:  b*Batch + k/Block*Lead + r*Block + k%Block
//	blocked along R:  b*Batch + r/Block*Lead + k/Step*Block*Step + r%Block*Step + k%Step
//
// all in elements. Block is 0 for the first two and Step at least 1.
type matrix struct {
	Batch, Lead, Block int64
	AlongK             bool
	DType              tensor.DType
	Step               uint8
}

// at returns the byte offset of an element.
func (m *matrix) at(b, r, k int64) int64 {
	var i int64
	switch {
	case b|r|k == 0: // as small products ask, which a division would delay
		return 0
	case m.Block == 0 && m.AlongK:
		i = r*m.Lead + k
	case m.Block == 0:
		i = k*m.Lead + r
	case m.AlongK:
		i = k/m.Block*m.Lead + r*m.Block + k%m.Block
	default:
		step := int64(m.Step)
		i = r/m.Block*m.Lead + k/step*m.Block*step + r%m.Block*step + k%step
	}
	return (b*m.Batch + i) * m.DType.Size()
}

// direct reports whether runs of the matrix are f32 in memory.
func (m *matrix) direct() bool { return m.DType == tensor.Float32 && m.Block == 0 }

// run returns n elements from (r, k) on, along the matrix's direction: without
// a copy where they are f32 in one piece, else in buf, which has room for n.
func (m *matrix) run(buf []float32, mem []byte, b, r, k, n int64) []float32 {
	if m.direct() {
		o := m.at(b, r, k)
		return device.View[float32](mem[o : o+4*n])
	}
	buf = buf[:n:n]
	if m.Block == 0 {
		kernel.LoadFloats(buf, mem[m.at(b, r, k):], m.DType)
		return buf
	}
	if m.Step > 1 {
		for i := range buf {
			kernel.LoadFloats(buf[i:i+1], mem[m.at(b, r+int64(i), k):], m.DType)
		}
		return buf
	}
	for got := int64(0); got < n; {
		pos := r + got
		o := m.at(b, pos, k)
		if m.AlongK {
			pos = k + got
			o = m.at(b, r, pos)
		}
		piece := min(n-got, m.Block-pos%m.Block)
		kernel.LoadFloats(buf[got:got+piece], mem[o:], m.DType)
		got += piece
	}
	return buf
}

// row8 returns elements (r, k) to (r, k+n-1) of an int8 matrix: without a copy
// where they lie in one piece, else in buf, which has room for n.
func (m *matrix) row8(buf []int8, mem []byte, b, r, k, n int64) []int8 {
	src := device.View[int8](mem)
	if m.AlongK && m.Block == 0 {
		o := m.at(b, r, k)
		return src[o : o+n : o+n]
	}
	buf = buf[:n:n]
	if !m.AlongK {
		for i := range buf {
			buf[i] = src[m.at(b, r, k+int64(i))]
		}
		return buf
	}
	for got := int64(0); got < n; {
		o := m.at(b, r, k+got)
		piece := min(n-got, m.Block-(k+got)%m.Block)
		copy(buf[got:got+piece], src[o:o+piece])
		got += piece
	}
	return buf
}
