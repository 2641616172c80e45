package attention

import (
	"goatb/kernel/paged"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

const (
	codeRank = status.ErrInvalidTensorDimNum
	codeDim  = status.ErrInvalidTensorDim
)

// Check checks ranks and sizes in ATB's order; at Setup also what ATB leaves
// to the kernel.
func (p PagedAttention) Check(q *operation.Query) error {
	x := p.ports()
	setup := q.Stage != operation.StageInfer
	if setup {
		if err := q.InRank(codeRank, x.key, 4); err != nil {
			return err
		}
	}
	if err := p.checkRanks(q, &x); err != nil {
		return err
	}
	if err := p.checkCaches(q, &x); err != nil {
		return err
	}
	if err := p.checkLimits(q, &x); err != nil {
		return err
	}
	for i := range q.In {
		if q.In[i].Format != tensor.ND {
			return q.BadIn(status.ErrInvalidTensorFormat, i, "want layout nd, got %s", q.In[i])
		}
	}
	if !setup {
		return nil
	}
	if err := p.checkOutput(q, &x); err != nil {
		return err
	}
	if err := p.checkCounts(q, &x); err != nil {
		return err
	}
	if err := p.checkFactors(q, &x); err != nil {
		return err
	}
	if !p.masked() {
		return nil
	}
	return p.checkMask(q, &x)
}

func (p PagedAttention) checkRanks(q *operation.Query, x *pagedPorts) error {
	for _, r := range [...]struct{ in, rank int }{{x.value, 4}, {x.query, 3}, {x.key, 4}, {x.tables, 2}, {x.contextLens, 1}} {
		if r.in >= 0 {
			if err := q.InRank(codeRank, r.in, r.rank); err != nil {
				return err
			}
		}
	}
	if !p.BatchRunStatusEnable {
		return nil
	}
	n := q.In[x.query].Dim(0)
	for _, i := range [...]int{x.tables, x.contextLens} {
		if rows := q.In[i].Dim(0); n > rows {
			return q.BadIn(codeDim, i, "want at least %d entries, one for each query row, got %d", n, rows)
		}
	}
	return nil
}

// slotAxis and headAxis are the axes of the caches.
func (p PagedAttention) slotAxis() int {
	if p.InputLayout == LayoutBNSD {
		return 2
	}
	return 1
}

func (p PagedAttention) headAxis() int { return 3 - p.slotAxis() }

func (p PagedAttention) checkCaches(q *operation.Query, x *pagedPorts) error {
	k := &q.In[x.key]
	if x.value >= 0 {
		v := &q.In[x.value]
		for axis := range 3 {
			if k.Dim(axis) != v.Dim(axis) {
				return q.BadIn(codeDim, x.value, "want %s but for the last size, got %s", k.Shape, v.Shape)
			}
		}
	}
	if dq, dk := q.In[x.query].Dim(2), k.Dim(3); dq != dk {
		return q.BadIn(codeDim, x.query, "want heads of size %d as in the key cache, got %d", dk, dq)
	}
	return nil
}

// checkLimits checks sizes against the profile's limits.
func (p PagedAttention) checkLimits(q *operation.Query, x *pagedPorts) error {
	k := &q.In[x.key]
	dk, dv, bs := k.Dim(3), p.valueSize(q, x), k.Dim(p.slotAxis())
	if dv > dk && p.mla() {
		return q.BadIn(codeDim, x.key, "want heads of at least mlaVHeadSize %d, got %d", dv, dk)
	}
	feature := p.QuantType != QuantNone || p.spec() || p.ScaleType == ScaleLogN || p.compress()
	err := p.checkWide(q, x, dk, dv, bs)
	if feature && !p.mla() {
		err = p.checkFeature(q, x, dk, dv, bs)
	}
	if err != nil {
		return err
	}
	if limit, ok := q.Limit("batch"); ok && q.In[x.contextLens].Dim(0) > limit {
		return q.BadIn(codeDim, x.contextLens, "want at most %d sequences, got %d", limit, q.In[x.contextLens].Dim(0))
	}
	if p.MaskType == PagedMaskFree {
		return status.Errorf(codeDim, "maskType MASK_FREE exists on Ascend 310P only")
	}
	return nil
}

// checkFeature checks the limits of the kernels with quantisation, several
// query rows, scales by length or contexts by head.
func (p PagedAttention) checkFeature(q *operation.Query, x *pagedPorts, dk, dv, bs int64) error {
	limit, ok := q.Limit("featureHeadSize")
	if !ok {
		return nil
	}
	if dk != dv {
		return q.BadIn(codeDim, x.value, "want heads of size %d as in the key cache, got %d", dk, dv)
	}
	if dk > limit {
		return q.BadIn(codeDim, x.key, "want heads of size at most %d, got %d", limit, dk)
	}
	if most, ok := q.Limit("featureBlockElements"); ok && dk*bs > most {
		return q.BadIn(codeDim, x.key, "want head size times block size at most %d, got %d*%d", most, dk, bs)
	}
	return nil
}

// checkWide checks the limits of the other kernels: large heads need small
// blocks, but for one shape.
func (p PagedAttention) checkWide(q *operation.Query, x *pagedPorts, dk, dv, bs int64) error {
	if limit, ok := q.Limit("headSize"); ok && max(dk, dv) > limit {
		return q.BadIn(codeDim, x.key, "want heads of size at most %d, got %d and %d", limit, dk, dv)
	}
	wide, ok := q.Limit("wideHeadSize")
	if !ok || max(dk, dv) <= wide {
		return nil
	}
	most, _ := q.Limit("wideBlockSize")
	const mlaKey, mlaValue = 576, 512
	if dk == mlaKey && dv == mlaValue && !p.spec() && (p.HeadNum == 16 || p.HeadNum == 32) {
		most, _ = q.Limit("mlaBlockSize")
	}
	if bs > most {
		return q.BadIn(codeDim, x.key, "want a block size of at most %d for heads of size %d and %d, got %d", most, dk, dv, bs)
	}
	return nil
}

func (p PagedAttention) checkOutput(q *operation.Query, x *pagedPorts) error {
	out, query := &q.Out[0], &q.In[x.query]
	if want := query.Shape.With(2, p.valueSize(q, x)); out.Shape != want {
		return q.BadOut(codeDim, 0, "want %s, got %s", want, out.Shape)
	}
	k := &q.In[x.key]
	if x.razor >= 0 {
		if err := q.InShape(codeDim, x.razor, tensor.ShapeOf(k.Dim(0), k.Dim(1))); err != nil {
			return err
		}
	}
	if x.logN >= 0 {
		return q.InShape(codeDim, x.logN, tensor.ShapeOf(q.In[x.contextLens].Dim(0)))
	}
	return nil
}

// checkCounts checks numbers of heads and sequences against each other.
func (p PagedAttention) checkCounts(q *operation.Query, x *pagedPorts) error {
	query, k := &q.In[x.query], &q.In[x.key]
	if got := query.Dim(1); got != int64(p.HeadNum) {
		return q.BadIn(codeDim, x.query, "want headNum %d heads, got %d", p.HeadNum, got)
	}
	heads := p.kvHeads()
	if p.compress() {
		heads = 1
	}
	if got := k.Dim(p.headAxis()); got != heads {
		return q.BadIn(codeDim, x.key, "want %d heads, got %d in %s", heads, got, k.Shape)
	}
	b, n := q.In[x.contextLens].Dim(0), query.Dim(0)
	if rows := q.In[x.tables].Dim(0); rows != b {
		return q.BadIn(codeDim, x.contextLens, "want %d lengths, one for each row of the block tables, got %d", rows, b)
	}
	want := n
	if p.compress() {
		want *= p.kvHeads()
	}
	if !p.spec() && b != want && (!p.BatchRunStatusEnable || p.compress()) {
		return q.BadIn(codeDim, x.contextLens, "want %d lengths for %d query rows, got %d", want, n, b)
	}
	if x.runStatus >= 0 {
		if got := q.In[x.runStatus].Numel(); got != b && got != n {
			return q.BadIn(codeDim, x.runStatus, "want %d values, got %s", b, q.In[x.runStatus].Shape)
		}
	}
	if x.queryLens >= 0 {
		return q.InShape(codeDim, x.queryLens, tensor.ShapeOf(b))
	}
	return nil
}

// checkFactors checks the sizes of scales and offsets.
func (p PagedAttention) checkFactors(q *operation.Query, x *pagedPorts) error {
	dk, dv := q.In[x.key].Dim(3), p.valueSize(q, x)
	nk, nv := p.kvHeads()*dk, p.kvHeads()*dv
	if p.int8All() {
		nk, nv = int64(p.HeadNum), int64(p.HeadNum)
	}
	for _, f := range [...]struct {
		in   int
		want int64
	}{{x.keyScale, nk}, {x.keyOffset, nk}, {x.valueScale, nv}, {x.valueOffset, nv}, {x.probScale, nk}} {
		if f.in >= 0 && q.In[f.in].Numel() != f.want {
			return q.BadIn(codeDim, f.in, "want %d elements, got %s", f.want, q.In[f.in].Shape)
		}
	}
	return nil
}

// maskMode tells how the mask's rows go with the query rows.
func (p PagedAttention) maskMode() paged.MaskMode {
	switch {
	case !p.masked():
		return paged.NoMask
	case p.spec() && p.MaskType == PagedMaskSpec:
		return paged.ByToken
	case p.spec():
		return paged.ByPosition
	}
	return paged.BySequence
}

// checkMask checks the mask's shape but for the last size, which the context
// lengths are checked against.
func (p PagedAttention) checkMask(q *operation.Query, x *pagedPorts) error {
	m, n := &q.In[x.mask], q.In[x.query].Dim(0)
	batch, heads := q.In[x.contextLens].Dim(0), int64(p.HeadNum)
	if p.compress() {
		batch = n
	}
	one := func(axis int, want int64) bool { return m.Dim(axis) == 1 || m.Dim(axis) == want }
	switch mode := p.maskMode(); {
	case mode == paged.ByToken && m.Rank() == 2 && m.Dim(0) == n:
		return nil
	case mode == paged.ByToken:
		return q.BadIn(codeDim, x.mask, "want [%d,columns], got %s", n, m.Shape)
	case mode == paged.ByPosition && (m.Rank() == 2 || m.Rank() == 3 && one(0, batch)):
		return nil
	case mode == paged.ByPosition:
		return q.BadIn(codeDim, x.mask, "want [positions,columns] or [%d or 1,positions or 1,columns], got %s", batch, m.Shape)
	case m.Rank() >= 2 && m.Rank() <= 4 && one(0, batch) && (m.Rank() < 3 || one(1, heads)) && (m.Rank() < 4 || m.Dim(2) == 1):
		return nil
	}
	return q.BadIn(codeDim, x.mask, "want [%d or 1,columns], [%[1]d or 1,%d or 1,columns] or [%[1]d or 1,%[2]d or 1,1,columns], got %[3]s", batch, heads, m.Shape)
}
