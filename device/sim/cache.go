package sim

import "goatb/device"

// cache is the shared cache of the device: the windows of memory that were used
// last, as many as fit. A window that does not fit as a whole passes through and
// leaves nothing of the others that it is larger than.
type cache struct {
	windows []device.Buffer // the latest last
	used    int64
}

// read reports whether the first size bytes of b are in the cache, and uses them.
// An operand that is read in part only is taken not to be.
func (c *cache) read(b device.Buffer, size, capacity int64) bool {
	if size < b.Size() {
		c.drop(size, capacity)
		return false
	}
	hit := size > 0 && c.remove(b) == size
	c.keep(b, capacity)
	return hit
}

// write puts b into the cache and reports whether it fits.
func (c *cache) write(b device.Buffer, capacity int64) bool {
	c.remove(b)
	return c.keep(b, capacity)
}

// remove takes the bytes of b out and returns how many there were.
func (c *cache) remove(b device.Buffer) int64 {
	found := int64(0)
	for i := 0; i < len(c.windows); i++ {
		w := c.windows[i]
		if w.Allocation() != b.Allocation() {
			continue
		}
		lo, hi := max(w.Offset(), b.Offset()), min(w.Offset()+w.Size(), b.Offset()+b.Size())
		if lo >= hi {
			continue
		}
		found += hi - lo
		c.used -= w.Size()
		front, back := lo-w.Offset(), w.Offset()+w.Size()-hi
		rest := w.At(0, front)
		if back > front {
			rest = w.At(hi-w.Offset(), back)
		}
		if rest.Size() > 0 {
			c.used += rest.Size()
			c.windows[i] = rest
			continue
		}
		c.windows = append(c.windows[:i], c.windows[i+1:]...)
		i--
	}
	return found
}

// keep appends b and drops the oldest windows beyond the capacity.
func (c *cache) keep(b device.Buffer, capacity int64) bool {
	if b.Size() == 0 {
		return true
	}
	if b.Size() > capacity {
		c.drop(b.Size(), capacity)
		return false
	}
	c.windows = append(c.windows, b)
	c.used += b.Size()
	c.drop(0, capacity)
	return true
}

// drop forgets the oldest windows until `room` more bytes fit.
func (c *cache) drop(room, capacity int64) {
	n := 0
	for n < len(c.windows) && c.used > capacity-room {
		c.used -= c.windows[n].Size()
		n++
	}
	if n > 0 {
		kept := copy(c.windows, c.windows[n:])
		clear(c.windows[kept:])
		c.windows = c.windows[:kept]
	}
}
