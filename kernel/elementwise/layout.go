package elementwise

import (
	"goatb/status"
	"goatb/tensor"
)

// maxOperands is the largest number of operands that a broadcast joins.
const maxOperands = 3

// layout says how operands of a broadcast walk while the output is walked in
// row-major order. Dimensions of 1 are left out and dimensions that all
// operands walk alike are joined.
type layout struct {
	// Rank counts the dimensions in use, at least 1; Dims are the output's.
	Rank int64
	Dims [tensor.MaxRank]int64
	// Strides holds each operand's step per dimension in elements, 0 where it
	// is repeated.
	Strides [maxOperands][tensor.MaxRank]int64
	// Walks summarises the strides of each operand.
	Walks [maxOperands]walk
}

// walk is the kind of an operand's steps.
type walk int64

const (
	// dense operands have the output's shape.
	dense walk = iota
	// single operands are one element.
	single
	// strided operands are anything else.
	strided
)

// Broadcast returns the shape that two shapes broadcast to: each pair of
// dimensions, aligned at the last, is equal or has a 1. Otherwise the error is
// ErrInvalidTensorDim.
func Broadcast(a, b tensor.Shape) (tensor.Shape, error) {
	long, short := a, b
	if short.Rank() > long.Rank() {
		long, short = short, long
	}
	for i := 1; i <= short.Rank(); i++ {
		x, y := long.Dim(-i), short.Dim(-i)
		switch {
		case x == y || y == 1:
		case x == 1:
			long = long.With(-i, y)
		default:
			return tensor.Shape{}, status.Errorf(status.ErrInvalidTensorDim, "%s and %s do not broadcast", a, b)
		}
	}
	return long, nil
}

// BroadcastsTo returns an error, ErrInvalidTensorDim, when s does not broadcast
// to out without changing it.
func BroadcastsTo(s, out tensor.Shape) error {
	if got, err := Broadcast(s, out); err != nil || got != out {
		return status.Errorf(status.ErrInvalidTensorDim, "%s does not broadcast to %s", s, out)
	}
	return nil
}

// set lays out operands over an output that they broadcast to.
func (l *layout) set(out tensor.Shape, operands ...tensor.Shape) {
	l.Rank = 0
	for d := range out.Rank() {
		n := out.Dim(d)
		if n == 1 {
			continue
		}
		var steps [maxOperands]int64
		for i := range operands {
			steps[i] = step(&operands[i], d-out.Rank())
		}
		if !l.join(n, &steps, len(operands)) {
			l.Dims[l.Rank] = n
			for i := range operands {
				l.Strides[i][l.Rank] = steps[i]
			}
			l.Rank++
		}
	}
	if l.Rank == 0 {
		l.Rank, l.Dims[0] = 1, 1
	}
	for i := range operands {
		switch operands[i].Numel() {
		case out.Numel():
			l.Walks[i] = dense
		case 1:
			l.Walks[i] = single
		default:
			l.Walks[i] = strided
		}
	}
}

// step is the distance of neighbours of s along dimension d, which is negative
// and counts from the end.
func step(s *tensor.Shape, d int) int64 {
	if -d > s.Rank() || s.Dim(d) == 1 {
		return 0
	}
	return s.Product(s.Rank()+d+1, s.Rank())
}

// join merges a dimension into the one before it when every operand walks both
// as one.
func (l *layout) join(n int64, steps *[maxOperands]int64, operands int) bool {
	if l.Rank == 0 {
		return false
	}
	last := l.Rank - 1
	for i := range operands {
		if l.Strides[i][last] != steps[i]*n {
			return false
		}
	}
	l.Dims[last] *= n
	for i := range operands {
		l.Strides[i][last] = steps[i]
	}
	return true
}

// minRun is the length of runs from which on they are not copied.
const minRun = 32

// longRuns reports whether the operands can be walked in runs over which at
// least one of two is an array.
func (l *layout) longRuns() bool {
	last := l.Rank - 1
	return l.Dims[last] >= minRun && (l.Strides[0][last] != 0 || l.Strides[1][last] != 0)
}

// walker walks the operands of a layout in runs of outputs: within a run the
// offset of an operand grows with the output's or stays.
type walker struct {
	l   *layout
	at  [tensor.MaxRank]int64
	off [maxOperands]int64
}

// walker starts at output lo.
func (l *layout) walker(lo int64) walker {
	w := walker{l: l}
	for d := l.Rank - 1; d >= 0; d-- {
		w.at[d] = lo % l.Dims[d]
		lo /= l.Dims[d]
		for i := range w.off {
			w.off[i] += w.at[d] * l.Strides[i][d]
		}
	}
	return w
}

// left is the number of outputs to the end of the run.
func (w *walker) left() int64 { return w.l.Dims[w.l.Rank-1] - w.at[w.l.Rank-1] }

// offset is where operand i is, in elements.
func (w *walker) offset(i int) int64 { return w.off[i] }

// repeats reports whether operand i is one element over a run.
func (w *walker) repeats(i int) bool { return w.l.Strides[i][w.l.Rank-1] == 0 }

// move goes on by n outputs, at most left.
func (w *walker) move(n int64) {
	last := w.l.Rank - 1
	if w.at[last]+n < w.l.Dims[last] {
		w.at[last] += n
		for i := range w.off {
			w.off[i] += n * w.l.Strides[i][last]
		}
		return
	}
	at := w.at
	for i := range w.off {
		at = w.at
		w.off[i] += w.l.nextRow(&w.l.Strides[i], &at)
	}
	w.at = at
}

// word is an element seen as bits, or a number.
type word interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32
}

// fetch returns operand i's elements for the outputs [lo, lo+n): a window of
// mem where they lie together and a copy in buf otherwise.
func fetch[T word](l *layout, i int, buf, mem []T, lo, n int64) []T {
	switch l.Walks[i] {
	case dense:
		return mem[lo : lo+n]
	case single:
		return repeat(buf[:n], mem[0])
	}
	last := l.Rank - 1
	steps := &l.Strides[i]
	var at [tensor.MaxRank]int64
	off := int64(0)
	for d, rest := last, lo; d >= 0; d-- {
		at[d] = rest % l.Dims[d]
		rest /= l.Dims[d]
		off += at[d] * steps[d]
	}
	inner, unit := l.Dims[last], steps[last]
	if run := inner - at[last]; run >= n {
		if unit == 1 {
			return mem[off : off+n]
		}
		return repeat(buf[:n], mem[off])
	}
	for out := buf[:n]; ; {
		run := min(inner-at[last], int64(len(out)))
		if unit == 0 {
			repeat(out[:run], mem[off])
		} else {
			copy(out[:run], mem[off:off+run])
		}
		if out = out[run:]; len(out) == 0 {
			return buf[:n]
		}
		off += l.nextRow(steps, &at)
	}
}

// nextRow moves at from the row that it is in to the start of the next one and
// returns by how many elements the operand moves.
func (l *layout) nextRow(steps, at *[tensor.MaxRank]int64) int64 {
	last := l.Rank - 1
	move := -at[last] * steps[last]
	at[last] = 0
	for d := last - 1; d >= 0; d-- {
		move += steps[d]
		if at[d]++; at[d] < l.Dims[d] {
			break
		}
		move -= at[d] * steps[d]
		at[d] = 0
	}
	return move
}

// repeat fills dst with v.
func repeat[T word](dst []T, v T) []T {
	dst[0] = v
	for n := 1; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
	return dst
}
