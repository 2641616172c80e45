package checked

import (
	"cmp"
	"fmt"
	"slices"

	"goatb/device"
	"goatb/status"
)

// span is a range of bytes. Memory that Go code can address is named by its
// addresses, so that two buffers over the same bytes meet; other memory by its
// allocation and offsets.
type span struct {
	alloc  *device.Allocation // nil for addresses
	lo, hi uint64
}

// spanOf returns the bytes of a window.
func spanOf(b device.Buffer) span {
	if mem := b.Bytes(); len(mem) > 0 {
		lo := address(mem)
		return span{lo: lo, hi: lo + uint64(len(mem))}
	}
	if b.IsNil() || b.Size() == 0 {
		return span{}
	}
	return span{alloc: b.Allocation(), lo: uint64(b.Offset()), hi: uint64(b.Offset() + b.Size())}
}

func (s span) overlaps(o span) bool {
	return s.alloc == o.alloc && s.lo < o.hi && o.lo < s.hi && s.lo < s.hi && o.lo < o.hi
}

func (s span) covers(o span) bool { return s.alloc == o.alloc && s.lo <= o.lo && o.hi <= s.hi }

// access is a use of memory by a task.
type access struct {
	span
	write bool
	name  string        // "operand 2", "scratch", "source"
	keep  device.Buffer // keeps Go memory from being used anew while it is remembered
	task  *task
}

// history is the accesses to some memory that a later task might have to be
// ordered against.
type history struct{ list []access }

// historyOf returns where accesses to a span are remembered; mu is held.
func (d *Device) historyOf(s span, b device.Buffer) *history {
	if own, ok := d.live[b.Allocation()]; ok {
		return &own.history
	}
	if s.alloc == nil {
		i, found := slices.BinarySearchFunc(d.sorted, s.lo, func(o *allocation, lo uint64) int { return cmp.Compare(o.lo, lo) })
		if !found {
			i--
		}
		if i >= 0 && s.lo < d.sorted[i].hi {
			return &d.sorted[i].history
		}
	}
	return &d.foreign
}

// add remembers an access of a task whose clock is now, and reports the first
// access that it is not ordered against. Accesses that the host knows to be done
// are dropped. Nothing that settles later can race with them: it is enqueued
// later, or it waited for a record that is.
func (h *history) add(a access, now, host clock) (race *access) {
	keep := h.list[:0]
	for _, old := range h.list {
		o := old.task.origin.stream
		if host.at(o) >= old.task.index {
			continue
		}
		ordered := now.at(o) >= old.task.index
		if !ordered && race == nil && (a.write || old.write) && a.overlaps(old.span) {
			race = &access{span: old.span, write: old.write, name: old.name, task: old.task}
		}
		if ordered && old.task != a.task && a.covers(old.span) && (a.write || !old.write) {
			continue
		}
		keep = append(keep, old)
	}
	clear(h.list[len(keep):])
	h.list = append(keep, a)
	return race
}

// written reports whether an access that may not be done yet writes into s.
func (h *history) written(s span, host clock) bool {
	return slices.ContainsFunc(h.list, func(a access) bool {
		return a.write && a.overlaps(s) && host.at(a.task.origin.stream) < a.task.index
	})
}

// raceFinding tells about two accesses.
func raceFinding(later, earlier *access) error {
	verb := map[bool]string{true: "writes", false: "reads"}
	from, to := max(later.lo, earlier.lo), min(later.hi, earlier.hi)
	f := &Finding{Kind: Race, Text: fmt.Sprintf("%s %s %d bytes (its %s) that %s %s (its %s), and nothing orders the two",
		later.task.origin.String(), verb[later.write], to-from, later.name, earlier.task.origin.String(), verb[earlier.write], earlier.name)}
	return f.failure(status.ErrRuntimeFail, later.task.origin.label)
}

// overlapFindings looks for outputs that share bytes with other operands.
func overlapFindings(t *task) []error {
	var found []error
	for i := range t.uses {
		for j := range i {
			a, b := &t.uses[i], &t.uses[j]
			if !a.overlaps(b.span) || !a.write && !b.write {
				continue
			}
			within := a.span == b.span || t.overlay && (a.covers(b.span) || b.covers(a.span))
			if within && a.write != b.write && !a.private() && !b.private() {
				continue
			}
			f := &Finding{Kind: Overlap, Text: fmt.Sprintf("%s: %s (%s) and %s (%s) share %d bytes",
				t.origin.String(), b.name, b.role(), a.name, a.role(), min(a.hi, b.hi)-max(a.lo, b.lo))}
			found = append(found, f.failure(status.ErrRuntimeFail, t.origin.label))
		}
	}
	return found
}

// private reports memory that a kernel may not compute in place on.
func (a *access) private() bool { return a.name == "scratch" || a.name == "tiling" }

func (a *access) role() string {
	if a.write {
		return "output"
	}
	return "input"
}
