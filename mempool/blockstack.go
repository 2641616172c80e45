package mempool

// blockStack is the layout that types 1 and 2 share: blocks that are never
// split stand one on another; unused blocks at the top are dropped.
type blockStack struct {
	blocks []stackBlock
	end    int64
}

type stackBlock struct {
	offset, size int64
	used         bool
}

// push appends a used block.
func (s *blockStack) push(size int64) (offset int64, block int32) {
	offset = s.end
	s.blocks = append(s.blocks, stackBlock{offset: offset, size: size, used: true})
	s.end += size
	return offset, int32(len(s.blocks) - 1)
}

// reuse marks a block as used and returns its offset.
func (s *blockStack) reuse(block int32) int64 {
	s.blocks[block].used = true
	return s.blocks[block].offset
}

// unuse marks a block as unused.
func (s *blockStack) unuse(block int32) { s.blocks[block].used = false }

func (s *blockStack) size(block int32) int64 { return s.blocks[block].size }

func (s *blockStack) topUnused() bool {
	return len(s.blocks) > 0 && !s.blocks[len(s.blocks)-1].used
}

// pop drops the block at the top.
func (s *blockStack) pop() (block int32, size int64) {
	top := len(s.blocks) - 1
	b := s.blocks[top]
	s.blocks = s.blocks[:top]
	s.end = b.offset
	return int32(top), b.size
}

func (s *blockStack) reset() {
	s.blocks = s.blocks[:0]
	s.end = 0
}
