package mempool

// bestFit reuses the smallest unused block that is large enough, the lowest of
// equal ones: type 2.
type bestFit struct {
	stack  blockStack
	unused freeTree // (size, block): blocks are numbered by position
}

func (s *bestFit) take(size int64) (int64, int32) {
	block, ok := s.unused.from(size)
	if !ok {
		return s.stack.push(size)
	}
	s.unused.remove(s.stack.size(block), int64(block))
	return s.stack.reuse(block), block
}

func (s *bestFit) give(block int32) {
	s.stack.unuse(block)
	s.unused.insert(s.stack.size(block), int64(block), block)
	for s.stack.topUnused() {
		top, size := s.stack.pop()
		s.unused.remove(size, int64(top))
	}
}

func (s *bestFit) reset() {
	s.stack.reset()
	s.unused.reset()
}
