package mempool

// firstFit reuses the lowest unused block that is large enough: type 1.
type firstFit struct {
	stack  blockStack
	unused freeTree // (block, size): blocks are numbered by position
}

func (s *firstFit) take(size int64) (int64, int32) {
	block, ok := s.unused.first(size)
	if !ok {
		return s.stack.push(size)
	}
	s.unused.remove(int64(block), s.stack.size(block))
	return s.stack.reuse(block), block
}

func (s *firstFit) give(block int32) {
	s.stack.unuse(block)
	s.unused.insert(int64(block), s.stack.size(block), block)
	for s.stack.topUnused() {
		top, size := s.stack.pop()
		s.unused.remove(int64(top), size)
	}
}

func (s *firstFit) reset() {
	s.stack.reset()
	s.unused.reset()
}
