package reference

import (
	"fmt"

	"goatb/tensor"
)

// reshapeAndCache writes tokens into cache slots; every output starts as the
// cache that it aliases.
func reshapeAndCache(c *Input) ([]Tensor, error) {
	p, err := params(c, struct{ CompressType, KVCacheCfg int }{})
	if err != nil {
		return nil, err
	}
	if p.KVCacheCfg == 1 {
		return []Tensor{scatter(&c.In[0], &c.In[1], c.In[2].Ints())}, nil
	}
	write := func(t, cache *Tensor) Tensor { return scatter(t, cache, c.In[4].Ints()) }
	switch p.CompressType {
	case 1, 2:
		write = func(t, cache *Tensor) Tensor { return scatterHeads(t, cache, c, p.CompressType) }
	case 0:
	default:
		return nil, fmt.Errorf("compressType %d: %w", p.CompressType, ErrNone)
	}
	return []Tensor{write(&c.In[0], &c.In[2]), write(&c.In[1], &c.In[3])}, nil
}

// scatter writes token i to slot slots[i]; negative slots are left out. A cache
// in NZ order holds a token in pieces of its last dimension.
func scatter(tokens, cache *Tensor, slots []int64) Tensor {
	out := Zeros(cache.Desc)
	copy(out.Data, cache.Data)
	s, size := cache.Desc.Shape, cache.Desc.DType.Size()
	row := tokens.Desc.Numel() / tokens.Desc.Dim(0) * size
	blockSize, pieces, piece := s.Dim(1), int64(1), row
	nz := cache.Desc.Format == tensor.FractalNZ
	if nz {
		blockSize, pieces, piece = s.Dim(2), s.Dim(1), s.Dim(3)*size
	}
	for i, slot := range slots {
		if slot < 0 {
			continue
		}
		block, in := slot/blockSize, slot%blockSize
		for j := range pieces {
			to := ((block*pieces+j)*blockSize + in) * piece
			copy(out.Data[to:to+piece], tokens.Data[int64(i)*row+j*piece:])
		}
	}
	return out
}

// scatterHeads writes head vectors to consecutive slots: the last wins tokens
// of a batch (kind 1), or all but a window of wins tokens at the offset
// (kind 2).
func scatterHeads(tokens, cache *Tensor, c *Input, kind int) Tensor {
	out := Zeros(cache.Desc)
	copy(out.Data, cache.Data)
	slots, wins, lens := c.In[4].Ints(), c.In[5].Ints(), c.In[6].Ints()
	heads := tokens.Desc.Dim(1)
	width := tokens.Desc.Dim(2) * tokens.Desc.DType.Size()
	begin := int64(0)
	for b, n := range lens {
		for h := range heads {
			i := int64(b)*heads + h
			slot := slots[i]
			for t := range n {
				if !kept(c, kind, i, t, n, wins[i]) {
					continue
				}
				from := ((begin+t)*heads + h) * width
				copy(out.Data[slot*width:(slot+1)*width], tokens.Data[from:from+width])
				slot++
			}
		}
		begin += n
	}
	return out
}

// kept reports whether token t of n goes to the cache for index i.
func kept(c *Input, kind int, i, t, n, win int64) bool {
	if kind == 1 {
		return t >= n-win
	}
	o := c.In[7].Ints()[i]
	return o == -1 || t < o || t >= o+win
}
