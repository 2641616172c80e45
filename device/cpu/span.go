package cpu

// Large regions lie one behind the other in spans of huge pages: what ends in the
// middle of such a page leaves the rest of it to the next one, so that all of a model's
// weights lie in huge pages and none is wasted. Memory goes back to the system when its
// region is given back, addresses when all regions of a span are.

// span is a mapping that regions are cut from.
type span struct {
	raw  []byte
	rest []byte // behind the last region
	live int    // regions
}

// spans hands out large regions.
type spans struct {
	newest *span // that with the largest rest
}

// take returns zeroed memory of a number of bytes, whole pages.
func (s *spans) take(bytes int) (region, error) {
	x := s.newest
	if x == nil || len(x.rest) < bytes {
		var err error
		if x, err = newSpan(bytes); err != nil {
			return region{}, err
		}
		if s.newest == nil || len(x.rest)-bytes > len(s.newest.rest) {
			s.newest = x
		}
	}
	mem := x.rest[:bytes:bytes]
	x.rest = x.rest[bytes:]
	x.live++
	return region{mem: mem, span: x}, nil
}

// newSpan maps a span for a region, a small one where addresses are scarce.
func newSpan(bytes int) (*span, error) {
	mem, raw, err := mapHuge(max(bytes, spanBytes))
	if err != nil && bytes < spanBytes {
		mem, raw, err = mapHuge(bytes)
	}
	return &span{raw: raw, rest: mem}, err
}

// give takes a region back.
func (s *spans) give(g region) error {
	x := g.span
	if x.live--; x.live > 0 {
		return leavePages(g.mem)
	}
	if s.newest == x {
		s.newest = nil
	}
	return unmapPages(x.raw)
}
