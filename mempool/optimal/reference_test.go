package optimal

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// randomBuffers makes n buffers in the given number of sections.
func randomBuffers(rng *rand.Rand, n, sections int, maxSize int64) []Buffer {
	buffers := make([]Buffer, n)
	for i := range buffers {
		lo := rng.Int32N(int32(sections))
		hi := min(lo+1+rng.Int32N(max(2, int32(sections)/2)), int32(sections))
		buffers[i] = Buffer{Lower: lo, Upper: hi, Size: 1 + rng.Int64N(maxSize), Fixed: Free, Life: int64(hi - lo)}
	}
	return buffers
}

// perfect cuts a rectangle into n pieces: the buffers fill an arena of the given
// height without a hole.
func perfect(rng *rand.Rand, n, width int, height int64) []Buffer {
	pieces := []Buffer{{Upper: int32(width), Size: height}}
	for len(pieces) < n {
		i, j := rng.IntN(len(pieces)), rng.IntN(len(pieces))
		if int64(pieces[j].Upper-pieces[j].Lower)*pieces[j].Size > int64(pieces[i].Upper-pieces[i].Lower)*pieces[i].Size {
			i = j
		}
		a, b := pieces[i], pieces[i]
		if rng.IntN(2) == 0 {
			if a.Upper-a.Lower < 2 {
				continue
			}
			a.Upper = a.Lower + 1 + rng.Int32N(a.Upper-a.Lower-1)
			b.Lower = a.Upper
		} else {
			if a.Size < 2 {
				continue
			}
			a.Size = 1 + rng.Int64N(a.Size-1)
			b.Size -= a.Size
		}
		pieces[i] = a
		pieces = append(pieces, b)
	}
	rng.Shuffle(n, func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
	rankSections(pieces)
	return pieces
}

// rankSections numbers the lifetimes anew: a section for each run of starts that
// an end follows. It sets Life and Fixed.
func rankSections(buffers []Buffer) {
	type event struct {
		at, buffer int32
		start      bool
	}
	var events []event
	for i := range buffers {
		b := &buffers[i]
		b.Life, b.Fixed = int64(b.Upper-b.Lower), Free
		events = append(events, event{b.Lower, int32(i), true}, event{b.Upper, int32(i), false})
	}
	slices.SortFunc(events, func(a, b event) int {
		if a.at == b.at && a.start != b.start {
			return map[bool]int{true: 1, false: -1}[a.start]
		}
		return cmp.Compare(a.at, b.at)
	})
	section, open := int32(0), false
	for _, e := range events {
		if e.start {
			buffers[e.buffer].Lower, open = section, true
			continue
		}
		if open {
			section++
			open = false
		}
		buffers[e.buffer].Upper = section
	}
}

// fits tries all offsets of all buffers, in the order of their start, in an
// arena of at most 64 units.
func fits(buffers []Buffer, arena int64) bool {
	order := slices.Clone(buffers)
	slices.SortFunc(order, func(a, b Buffer) int {
		return cmp.Or(cmp.Compare(a.Lower, b.Lower), cmp.Compare(b.Size, a.Size))
	})
	var taken [64]uint64 // by section: units
	var place func(k int) bool
	place = func(k int) bool {
		if k == len(order) {
			return true
		}
		b := &order[k]
		used := uint64(0)
		for s := b.Lower; s < b.Upper; s++ {
			used |= taken[s]
		}
		for at := int64(0); at+b.Size <= arena; at += max(b.Align, 1) {
			units := (uint64(1)<<b.Size - 1) << at
			if b.Fixed != Free && at != b.Fixed || used&units != 0 {
				continue
			}
			for s := b.Lower; s < b.Upper; s++ {
				taken[s] |= units
			}
			if place(k + 1) {
				return true
			}
			for s := b.Lower; s < b.Upper; s++ {
				taken[s] &^= units
			}
		}
		return false
	}
	return place(0)
}

// solve solves and checks the plan pair by pair.
func solve(t testing.TB, s *Solver, buffers []Buffer, o Options) Result {
	t.Helper()
	sections := int32(1)
	for i := range buffers {
		sections = max(sections, buffers[i].Upper)
	}
	r, err := s.Solve(buffers, int(sections), o)
	require.NoError(t, err)
	if r.Offsets == nil {
		require.Equal(t, o.Below, r.Arena)
		return r
	}
	require.LessOrEqual(t, r.Bound, r.Arena)
	top := int64(0)
	for i := range buffers {
		a, at := &buffers[i], r.Offsets[i]
		require.GreaterOrEqual(t, at, int64(0))
		require.Zero(t, at%max(a.Align, 1))
		if a.Fixed != Free {
			require.Equal(t, a.Fixed, at)
		}
		top = max(top, at+a.Size)
		for j := range i {
			b, other := &buffers[j], r.Offsets[j]
			if a.Lower < b.Upper && b.Lower < a.Upper && at < other+b.Size && other < at+a.Size {
				t.Fatalf("buffers %d and %d overlap: %+v at %d, %+v at %d", j, i, *b, other, *a, at)
			}
		}
	}
	require.Equal(t, top, r.Arena)
	return r
}

// crowded makes buffers that fill every section to the same height, wherever
// there is room for them: the smallest arena is often above that.
func crowded(rng *rand.Rand, sections int, height int64) []Buffer {
	var done, live []Buffer
	free := height
	for s := range int32(sections) {
		kept := live[:0]
		for _, b := range live {
			if rng.IntN(2) == 0 {
				kept = append(kept, b)
				continue
			}
			b.Upper = s
			done = append(done, b)
			free += b.Size
		}
		live = kept
		for free > 0 {
			b := Buffer{Lower: s, Size: min(free, height/4+rng.Int64N(height/4)), Fixed: Free}
			live = append(live, b)
			free -= b.Size
		}
	}
	for _, b := range live {
		b.Upper = int32(sections)
		done = append(done, b)
	}
	for i := range done {
		done[i].Life = int64(done[i].Upper - done[i].Lower)
	}
	return done
}
