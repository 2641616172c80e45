package mempool

import (
	"math"
	"slices"

	"goatb/status"
)

// Alias says that an item lies in another one: its first byte is byte At of
// item In. It is how a view, a slice, the result of an operation in place, a
// part of a concatenation or a piece of a split say whose memory they have.
type Alias struct {
	Item, In int
	At       int64
}

// groups joins items that lie in one memory: union-find with the distance of
// each item from its parent.
type groups struct {
	items  []Item
	parent []int32
	at     []int64 // distance from the parent in bytes
	next   []int32 // the next member in a ring of the group
	size   []int32 // members, by root
	lo, hi []int64 // the bytes of the group from its root on, by root
}

// maxDistance bounds the distance between two items, so that sums fit int64.
const maxDistance = MaxArena / 2

func newGroups(items []Item) *groups {
	n := len(items)
	g := &groups{items: items, parent: make([]int32, n), at: make([]int64, n), next: make([]int32, n), size: make([]int32, n), lo: make([]int64, n), hi: make([]int64, n)}
	for i := range items {
		g.parent[i], g.next[i], g.size[i], g.hi[i] = int32(i), int32(i), 1, items[i].Size
	}
	return g
}

func (g *groups) clone() *groups {
	return &groups{g.items, slices.Clone(g.parent), slices.Clone(g.at), slices.Clone(g.next), slices.Clone(g.size), slices.Clone(g.lo), slices.Clone(g.hi)}
}

// find returns the root of an item and the item's distance from it.
func (g *groups) find(i int) (root int, at int64) {
	p := int(g.parent[i])
	if p == i {
		return i, 0
	}
	root, at = g.find(p)
	g.parent[i] = int32(root)
	g.at[i] += at
	return root, g.at[i]
}

// check refuses aliases that name no item or cannot be.
func (g *groups) check(a *Alias) error {
	n := len(g.items)
	if a.Item < 0 || a.Item >= n || a.In < 0 || a.In >= n {
		return status.Errorf(status.ErrInvalidParam, "alias of item %d in item %d: want items below %d", a.Item, a.In, n)
	}
	if a.At < -maxDistance || a.At > maxDistance {
		return status.Errorf(status.ErrInvalidParam, "alias of item %d in item %d: want a distance within -2^60 to 2^60, got %d", a.Item, a.In, a.At)
	}
	return nil
}

// join makes one group of an alias's items. Errors: ErrInvalidParam when they
// are one already at another distance, ErrOutOfDeviceMemory for a group of more
// than 2^60 bytes.
func (g *groups) join(a *Alias) error {
	ra, pa := g.find(a.In)
	rb, pb := g.find(a.Item)
	if ra == rb {
		if pb != pa+a.At {
			return status.Errorf(status.ErrInvalidParam, "item %d lies at byte %d of item %d, and at byte %d of it", a.Item, pb-pa, a.In, a.At)
		}
		return nil
	}
	d := pa + a.At - pb // of rb from ra
	lo, hi := min(g.lo[ra], g.lo[rb]+d), max(g.hi[ra], g.hi[rb]+d)
	if hi-lo > maxDistance {
		return status.Errorf(status.ErrOutOfDeviceMemory, "items %d and %d: want at most 2^60 bytes for items that share memory, got %d", a.Item, a.In, hi-lo)
	}
	if g.size[ra] < g.size[rb] {
		ra, rb, lo, hi, d = rb, ra, lo-d, hi-d, -d
	}
	g.lo[ra], g.hi[ra] = lo, hi
	g.parent[rb], g.at[rb] = int32(ra), d
	g.size[ra] += g.size[rb]
	g.next[ra], g.next[rb] = g.next[rb], g.next[ra]
	return nil
}

// members returns the items of a group in ascending order.
func (g *groups) members(i int) []int {
	list := []int{i}
	for k := int(g.next[i]); k != i; k = int(g.next[k]) {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// block is the item that stands for a group. Its alignment suits all members:
// those that ask for none are content with any place in a block that has the
// plan's own. Errors: ErrInvalidParam for members whose alignments or fixed
// offsets contradict each other.
func (g *groups) block(members []int, align int64) (Storage, error) {
	if len(members) == 1 {
		return Storage{Item: g.items[members[0]], Members: members}, nil
	}
	b := Storage{Item: Item{First: math.MaxInt64, Last: math.MinInt64}, Members: members}
	for _, i := range members {
		it := &g.items[i]
		if it.occupies() {
			b.Item.First, b.Item.Last = min(b.Item.First, it.First), max(b.Item.Last, it.Last)
		}
		if it.Align == 0 {
			b.Item.Align = max(b.Item.Align, align)
		}
		b.Item.Align = max(b.Item.Align, it.Align)
	}
	if b.Item.First > b.Item.Last {
		b.Item.First, b.Item.Last = 0, -1 // nobody takes room
	}
	root, _ := g.find(members[0])
	b.Item.Size = g.hi[root] - g.lo[root]
	return b, g.pin(&b, g.lo[root])
}

// pin checks where members lie in their block, whose first byte is `low` behind
// the group's root, and fixes the block where a member is.
func (g *groups) pin(b *Storage, low int64) error {
	for _, i := range b.Members {
		it := &g.items[i]
		_, at := g.find(i)
		at -= low
		if it.Align > 1 && at%it.Align != 0 {
			return status.Errorf(status.ErrInvalidParam, "item %d: want a multiple of %d, got byte %d of the memory it shares with item %d", i, it.Align, at, b.Members[0])
		}
		if !it.Fixed {
			continue
		}
		if b.Item.Fixed && b.Item.Offset != it.Offset-at || it.Offset < at {
			return status.Errorf(status.ErrInvalidParam, "item %d: its fixed offset %d contradicts byte %d of the memory it shares with item %d", i, it.Offset, at, b.Members[0])
		}
		b.Item.Fixed, b.Item.Offset = true, it.Offset-at
	}
	return nil
}

// low returns how far the first byte of a group lies from its root.
func (g *groups) low(members []int) int64 {
	root, _ := g.find(members[0])
	return g.lo[root]
}

// blocks returns a block for every group, in the order of their first items.
func (g *groups) blocks(align int64) ([]Storage, error) {
	out := make([]Storage, 0, len(g.items))
	seen := make([]bool, len(g.items))
	alone := make([]int, len(g.items))
	for i := range g.items {
		if seen[i] {
			continue
		}
		alone[i] = i
		m := alone[i : i+1 : i+1]
		if g.next[i] != int32(i) {
			m = g.members(i)
		}
		for _, k := range m {
			seen[k] = true
		}
		b, err := g.block(m, align)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
