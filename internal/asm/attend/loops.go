package attend

import (
	"unsafe"

	"goatb/internal/cpu"
)

// Chunk is the number of elements that Scores reads of a row of X at once: rows
// of X have zeros up to a multiple of it.
const Chunk = 8

// Elem is the element type of a cache.
type Elem uint8

// Element types.
const (
	F32 Elem = iota
	F16
	BF16
	I8
)

// size is the number of bytes of an element.
func (e Elem) size() int { return [...]int{4, 2, 2, 1}[e] }

// Span is some rows of a cache at even distances: how many bytes behind
// Args.Rows the first one lies, and how many there are, at least 1.
type Span struct{ At, Rows int }

// Ahead is memory that will be needed next: Rows pieces of some Bytes, Step bytes
// apart. It need not be memory at all: asking for it faults nowhere.
type Ahead struct {
	At                uintptr
	Bytes, Step, Rows int
}

// Args is what a loop does. Distances are in bytes. Loops change Rows, X, Y,
// Heads, Fetch and Fetches, and the words at the end are theirs.
type Args struct {
	// Rows is where the spans of the first head count from. Its rows are those of
	// Count spans from Spans on, one after the other, rows of a span Step
	// apart. Heads are Head apart.
	Rows        unsafe.Pointer
	Step, Head  int
	Spans       *Span
	Count       int
	Heads       int
	X           *float32
	XRow, XHead int
	Y           *float32
	YRow, YHead int
	// Width is the number of elements of a row of the cache.
	Width int
	// Fetches runs from Fetch on are brought to the second level cache meanwhile, in
	// their order, by loops that do whole registers: as many bytes as they read.
	Fetch   *Ahead
	Fetches int

	_ [29]int
}

// Loops are the loops of an instruction set for an element type.
//
// Scores: Y[r][j] = sum over i of X[r][i]·cache[j][i], where X has zeros behind
// Width up to a multiple of Chunk.
//
// Mix: Y[r][i] += sum over j of X[r][j]·cache[j][i].
//
// The sizes are positive.
type Loops struct {
	elem Elem
	wide bool
}

// Best returns the fastest loops that f allows for rows of an element type and
// width; ok is false if there are none.
func Best(f cpu.Features, e Elem, width int) (l Loops, ok bool) {
	switch {
	case !present:
	case f.Has(cpu.AVX512):
		return Loops{e, true}, true
	case f.Has(cpu.AVX2):
		return Loops{e, false}, e == F32 || width%Chunk == 0
	}
	return Loops{}, false
}

// Scores does any number of rows of X. It changes a.
func (l Loops) Scores(a *Args, rows int) {
	if l.most(rows) == rows {
		l.scores(a, rows)
		return
	}
	for done := 0; done < rows; {
		n := l.most(rows - done)
		b := a.from(done)
		l.scores(&b, n)
		done += n
	}
}

// scores does a number of rows that there is a loop for.
func (l Loops) scores(a *Args, rows int) {
	if l.wide {
		scoresAVX512(l.elem, rows, a)
	} else {
		scoresAVX2(l.elem, rows, a)
	}
}

// Mix does any number of rows of X. It changes a.
func (l Loops) Mix(a *Args, rows int) {
	if l.most(rows) == rows {
		l.mix(a, rows)
		return
	}
	for done := 0; done < rows; {
		n := l.most(rows - done)
		b := a.from(done)
		l.mix(&b, n)
		done += n
	}
}

// mix does a number of rows that there is a loop for.
func (l Loops) mix(a *Args, rows int) {
	if l.wide {
		mixAVX512(l.elem, rows, a)
	} else {
		mixAVX2(l.elem, rows, a)
	}
}

// most returns the largest number of rows that there is a loop for, up to rows.
func (l Loops) most(rows int) int {
	switch {
	case rows >= 8 && l.wide:
		return 8
	case rows >= 4:
		return 4
	}
	return min(rows, 2)
}

// from is a for the rows from row n on.
func (a *Args) from(n int) Args {
	b := *a
	b.X = (*float32)(unsafe.Add(unsafe.Pointer(a.X), n*a.XRow))
	b.Y = (*float32)(unsafe.Add(unsafe.Pointer(a.Y), n*a.YRow))
	if n > 0 {
		b.Fetches = 0
	}
	return b
}
