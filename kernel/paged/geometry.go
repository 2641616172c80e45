package paged

import (
	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// geometry is everything that follows from descriptors and parameters. It is
// plain data and part of the tiling.
type geometry struct {
	Tokens, Heads, KVHeads, Group int64
	KeyDim, ValueDim              int64
	// Sequences counts the context lengths, Columns the blocks of one.
	Sequences, Columns int64
	// MaxContext bounds the context lengths: table and mask hold no more.
	MaxContext int64
	// Blocks and BlockSize are those of the caches.
	Blocks, BlockSize int64
	Key, Value        cacheView
	Mask              maskView
	Quant             Quant
	PerHead           bool
	// Fixed says that queries become fixed-point numbers, for int8 keys.
	Fixed             bool
	HasKeyOffset      bool
	HasValueOffset    bool
	HasRazor, HasLogN bool
	// QueryType, KeyScaleType and ValueScaleType are element types.
	QueryType, KeyScaleType, ValueScaleType tensor.DType
	Scale                                   float32
}

// measure fills the zero geometry and checks that all descriptors agree with
// it; everything that the kernels index follows from it. It writes field by
// field, since the bytes of a tiling, padding included, must not vary.
func (g *geometry) measure(p *kernel.Problem, a Params) error {
	g.Heads, g.KVHeads, g.Quant, g.PerHead, g.Scale = a.Heads, a.KVHeads, a.Quant, a.PerHead, a.Scale
	if len(p.In) != NumInputs || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want %d inputs and 1 output, got %d and %d", NumInputs, len(p.In), len(p.Out))
	}
	if a.KVHeads < 1 || a.Heads < 1 || a.Heads%a.KVHeads != 0 {
		return status.Errorf(status.ErrInvalidParam, "%d heads are no multiple of %d kv heads", a.Heads, a.KVHeads)
	}
	g.Group = a.Heads / a.KVHeads
	q := &p.In[InQuery]
	if q.Rank() != 3 || q.Dim(1) != a.Heads || !isFloat(q.DType) && q.DType != tensor.Int8 {
		return status.Errorf(status.ErrInvalidParam, "want a float or int8 query of %d heads, got %s", a.Heads, q)
	}
	g.Tokens, g.KeyDim, g.QueryType = q.Dim(0), q.Dim(2), q.DType
	if err := g.measureCaches(p, a); err != nil {
		return err
	}
	if err := g.measureSequences(p, a); err != nil {
		return err
	}
	if err := g.measureMask(p, a); err != nil {
		return err
	}
	return g.measureFactors(p, a)
}

func (g *geometry) measureCaches(p *kernel.Problem, a Params) error {
	k := &p.In[InKey]
	if k.Rank() != 4 {
		return status.Errorf(status.ErrInvalidParam, "want a key cache of rank 4, got %s", k)
	}
	headAxis, slotAxis := 2, 1
	if a.HeadMajor {
		headAxis, slotAxis = 1, 2
	}
	heads := a.KVHeads
	if a.PerHead {
		heads = 1
	}
	g.Blocks, g.BlockSize = k.Dim(0), k.Dim(slotAxis)
	if k.Dim(headAxis) != heads || k.Dim(3) != g.KeyDim {
		return status.Errorf(status.ErrInvalidParam, "want a key cache of %d heads and width %d, got %s", heads, g.KeyDim, k)
	}
	g.Key.fill(k, a.HeadMajor, heads)
	v := &p.In[InValue]
	switch {
	case a.ValueDim > 0:
		if !v.Empty() || a.ValueDim > g.KeyDim {
			return status.Errorf(status.ErrInvalidParam, "values of width %d cannot be the front of keys of width %d", a.ValueDim, g.KeyDim)
		}
		g.ValueDim = a.ValueDim
		g.Value.fill(k, a.HeadMajor, heads)
		g.Value.Dim = g.ValueDim
		g.Value.Direct = g.Value.Direct && vec.CacheTakes(g.Value.element(), int(g.ValueDim))
	case v.Rank() != 4 || v.Shape.With(3, g.KeyDim) != k.Shape:
		return status.Errorf(status.ErrInvalidParam, "value cache %s does not go with key cache %s", v, k)
	default:
		g.ValueDim = v.Dim(3)
		g.Value.fill(v, a.HeadMajor, heads)
	}
	for _, c := range [...]*cacheView{&g.Key, &g.Value} {
		if !isFloat(c.Type) && c.Type != tensor.Int8 {
			return status.Errorf(status.ErrInvalidParam, "want float or int8 caches, got %s", c.Type)
		}
	}
	return nil
}

func (g *geometry) measureSequences(p *kernel.Problem, a Params) error {
	if err := g.measureLengths(p, a); err != nil {
		return err
	}
	t := &p.In[InTables]
	if t.DType != tensor.Int32 || t.Rank() != 2 || t.Dim(0) != g.Sequences {
		return status.Errorf(status.ErrInvalidParam, "want int32 block tables of %d rows, got %s", g.Sequences, t)
	}
	g.Columns = t.Dim(1)
	g.MaxContext = Capacity(g.Columns, g.BlockSize)
	return nil
}

// measureLengths checks the counts of host values.
func (g *geometry) measureLengths(p *kernel.Problem, a Params) error {
	want := 1
	if a.QueryLens {
		want++
	}
	if a.RunStatus {
		want++
	}
	if len(p.Val) != want {
		return status.Errorf(status.ErrInvalidParam, "want %d tensors of host values, got %d", want, len(p.Val))
	}
	g.Sequences = p.Val[0].Numel()
	n := g.Tokens
	if a.PerHead {
		n *= a.KVHeads
	}
	if a.QueryLens {
		if got := p.Val[1].Numel(); got != g.Sequences || a.PerHead {
			return status.Errorf(status.ErrInvalidParam, "want %d query lengths, got %d", g.Sequences, got)
		}
	} else if g.Sequences != n && (!a.RunStatus || a.PerHead || g.Sequences < n) {
		return status.Errorf(status.ErrInvalidParam, "want %d context lengths, got %d", n, g.Sequences)
	}
	if a.RunStatus {
		if got := p.Val[want-1].Numel(); got != g.Sequences && got != g.Tokens {
			return status.Errorf(status.ErrInvalidParam, "want %d run statuses, got %d", g.Sequences, got)
		}
	}
	return nil
}

// measureFactors checks the tensors that scores and values are multiplied with
// or shifted by.
func (g *geometry) measureFactors(p *kernel.Problem, a Params) error {
	razor, logN := &p.In[InRazor], &p.In[InLogN]
	g.HasRazor, g.HasLogN = !razor.Empty(), !logN.Empty()
	if g.HasRazor && (razor.DType != tensor.Float32 || razor.Shape != tensor.ShapeOf(g.Blocks, g.BlockSize)) {
		return status.Errorf(status.ErrInvalidParam, "want razor offsets f32[%d,%d], got %s", g.Blocks, g.BlockSize, razor)
	}
	if g.HasLogN && (logN.DType != tensor.Float32 || logN.Numel() != g.Sequences) {
		return status.Errorf(status.ErrInvalidParam, "want %d f32 factors of the scale, got %s", g.Sequences, logN)
	}
	ks, vs := &p.In[InKeyScale], &p.In[InValueScale]
	g.KeyScaleType, g.ValueScaleType = ks.DType, vs.DType
	g.HasKeyOffset, g.HasValueOffset = !p.In[InKeyOffset].Empty(), !p.In[InValueOffset].Empty()
	switch a.Quant {
	case NoQuant:
		return nil
	case Dequant:
		g.Fixed = g.Key.Direct && vec.FixedTakes(int(g.KeyDim))
		return g.measureChannels(p)
	}
	if ks.DType != tensor.Float32 || ks.Numel() != g.Heads || vs.DType != tensor.Float32 || vs.Numel() != g.Heads {
		return status.Errorf(status.ErrInvalidParam, "want %d f32 scales of keys and values each, got %s and %s", g.Heads, ks, vs)
	}
	if ps := &p.In[InProbScale]; a.Quant == Offline && (ps.DType != tensor.Float32 || ps.Numel() != g.Heads) {
		return status.Errorf(status.ErrInvalidParam, "want %d f32 scales of probabilities, got %s", g.Heads, ps)
	}
	return nil
}

// measureChannels checks the scales and offsets by channel.
func (g *geometry) measureChannels(p *kernel.Problem) error {
	for _, c := range [...]struct {
		scale, offset int
		view          *cacheView
	}{{InKeyScale, InKeyOffset, &g.Key}, {InValueScale, InValueOffset, &g.Value}} {
		n := g.KVHeads * c.view.Dim
		s, o := &p.In[c.scale], &p.In[c.offset]
		if c.view.Type != tensor.Int8 {
			return status.Errorf(status.ErrInvalidParam, "want int8 caches, got %s", c.view.Type)
		}
		if s.DType != tensor.Float32 && s.DType != tensor.Int64 || s.Numel() != n {
			return status.Errorf(status.ErrInvalidParam, "want %d f32 or int64 scales by channel, got %s", n, s)
		}
		if !o.Empty() && (o.DType != tensor.Int32 || o.Numel() != n) {
			return status.Errorf(status.ErrInvalidParam, "want %d int32 offsets by channel, got %s", n, o)
		}
	}
	return nil
}
