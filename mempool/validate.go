package mempool

import (
	"fmt"

	"goatb/status"
)

// Validate checks a plan, in O(n log n): every offset is at least 0 and a
// multiple of its item's Align, fixed items lie where they should, and no two
// items that live together share a byte. The error is ErrInvalidParam and names
// the item, or both items.
func Validate(items []Item, offsets []int64) error {
	return new(validator).check(items, offsets)
}

// validator knows nothing of how plans are made. It compares a few items pair by
// pair. More it puts one on another in the order of their offsets, over an outline
// of all nodes: an item that starts below the outline meets one that lies there
// already.
type validator struct {
	outline outline
	orderer orderer
	order   []int32
	line    timeline
	fixedAt []int64 // by item: offset of a fixed item
}

func (v *validator) check(items []Item, offsets []int64) error {
	if len(offsets) != len(items) {
		return status.Errorf(status.ErrInvalidParam, "want an offset for each of %d items, got %d", len(items), len(offsets))
	}
	v.order = v.order[:0]
	for i := range items {
		it, off := &items[i], offsets[i]
		switch {
		case off < 0 || it.Align > 1 && off%it.Align != 0:
			return status.Errorf(status.ErrInvalidParam, "item %d: want an offset of at least 0 that is a multiple of %d, got %d", i, max(it.Align, 1), off)
		case it.Fixed && off != it.Offset:
			return status.Errorf(status.ErrInvalidParam, "item %d: want fixed offset %d, got %d", i, it.Offset, off)
		case it.First < -MaxNode || it.Last > MaxNode:
			return status.Errorf(status.ErrInvalidParam, "item %d: want a lifetime within -2^61 to 2^61, got nodes %d to %d", i, it.First, it.Last)
		case it.Size < 0 || off+it.Size < off:
			return status.Errorf(status.ErrInvalidParam, "item %d: want a size that fits into int64, got %d bytes at %d", i, it.Size, off)
		case it.occupies():
			v.order = append(v.order, int32(i))
		}
	}
	return v.apart(items, offsets)
}

// fixed checks that fixed items do not lie on each other.
func (v *validator) fixed(items []Item) error {
	v.order, v.fixedAt = v.order[:0], grow(v.fixedAt, len(items))
	for i := range items {
		if items[i].Fixed && items[i].occupies() {
			v.order = append(v.order, int32(i))
			v.fixedAt[i] = items[i].Offset
		}
	}
	return v.apart(items, v.fixedAt)
}

// pairsMax is the number of items up to which pairs are compared: it takes less
// time.
const pairsMax = 40

// apart looks for overlaps among the items in v.order.
func (v *validator) apart(items []Item, offsets []int64) error {
	if len(v.order) > pairsMax {
		return v.stack(items, offsets)
	}
	for n, i := range v.order {
		if err := clash(items, offsets, v.order[:n], int(i)); err != nil {
			return err
		}
	}
	return nil
}

// stack looks for them with an outline.
func (v *validator) stack(items []Item, offsets []int64) error {
	v.line.load(items)
	v.outline.reset(v.line.coords)
	v.orderer.key = grow(v.orderer.key, len(items))
	for _, i := range v.order {
		v.orderer.key[i] = uint64(offsets[i])
	}
	v.orderer.sort(v.order)
	for n, i := range v.order {
		lo, hi := int(v.line.from[i]), int(v.line.to[i])
		if v.outline.top(lo, hi) > offsets[i] {
			if err := clash(items, offsets, v.order[:n], int(i)); err != nil {
				return err
			}
			return status.Errorf(status.ErrInternal, "item %d meets no item, though the outline says so", i)
		}
		v.outline.set(lo, hi, offsets[i]+items[i].Size)
	}
	return nil
}

// clash names item i and the first of other items that it meets.
func clash(items []Item, offsets []int64, others []int32, i int) error {
	a, at := &items[i], offsets[i]
	for _, j := range others {
		b, other := &items[j], offsets[j]
		if a.First <= b.Last && b.First <= a.Last && at < other+b.Size && other < at+a.Size {
			return status.Errorf(status.ErrInvalidParam, "items %d and %d overlap: %s, and %s", i, j, place(a, at), place(b, other))
		}
	}
	return nil
}

func place(it *Item, offset int64) string {
	return fmt.Sprintf("bytes %d to %d at nodes %d to %d", offset, offset+it.Size-1, it.First, it.Last)
}
