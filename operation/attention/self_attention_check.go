package attention

import (
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// Codes of the checks, shortened.
const (
	badDim   = status.ErrInvalidTensorDim
	badRank  = status.ErrInvalidTensorDimNum
	badSize  = status.ErrInvalidTensorSize
	badDType = status.ErrInvalidTensorDType
	badParam = status.ErrInvalidParam
)

// selfCheck checks the descriptors of one call.
type selfCheck struct {
	*operation.Query
	p *SelfAttention
	s selfPorts
	// keySize and valueSize are the sizes of a head, set by headSizes.
	keySize, valueSize int64
}

// Check checks ranks, dimensions and, at Setup, the output.
func (p SelfAttention) Check(q *operation.Query) error {
	c := selfCheck{Query: q, p: &p, s: p.ports()}
	if err := c.inputs(); err != nil {
		return err
	}
	if _, err := c.params(); err != nil {
		return err
	}
	if q.Stage != operation.StageSetup {
		return nil
	}
	want := p.output(&c)
	if q.Out[0] != want {
		return q.BadOut(badDim, 0, "want %s, got %s", want, q.Out[0])
	}
	return nil
}

// inputs makes the checks of InferShape in their order.
func (c *selfCheck) inputs() error {
	for _, check := range [...]func(*selfCheck) error{
		(*selfCheck).cacheFormat, (*selfCheck).logN, (*selfCheck).scales, (*selfCheck).headSizes, (*selfCheck).windowMask,
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	switch encoder, bnsd := c.p.CalcType == SelfPAEncoder, c.p.InputLayout == LayoutBNSD; {
	case encoder && bnsd:
		return c.encoderBNSD()
	case encoder:
		return c.encoder()
	case c.p.CalcType == SelfPrefixEncoder:
		return c.prefix()
	case bnsd:
		return c.cacheBNSD()
	}
	return c.cache()
}

// dim returns an error about input i when bad holds.
func (c *selfCheck) dim(bad bool, i int, format string, args ...any) error {
	if bad {
		return c.BadIn(badDim, i, format, args...)
	}
	return nil
}

func (c *selfCheck) cacheFormat() error {
	if c.p.CalcType == SelfPAEncoder {
		return nil
	}
	for _, i := range [...]int{c.s.key, c.s.value} {
		if f := c.In[i].Format; f != tensor.ND {
			return c.BadIn(badDType, i, "want a cache in nd, got %s", f)
		}
	}
	return nil
}

func (c *selfCheck) logN() error {
	i := c.s.logN
	if i == absent {
		return nil
	}
	if err := c.InRank(badDim, i, 1); err != nil {
		return err
	}
	if t := c.p.CalcType; t != SelfDecoder && t != SelfPAEncoder {
		return status.Errorf(badParam, "scaleType LOGN needs calcType DECODER or PA_ENCODER, got %s", t)
	}
	if _, limited := c.Limit("lognHighPrecision"); !limited {
		return nil
	}
	if c.p.CalcType == SelfPAEncoder && c.p.KernelType != KernelHighPrecision {
		return status.Errorf(badParam, "scaleType LOGN needs kernelType HIGH_PRECISION, got %s", c.p.KernelType)
	}
	if t := c.In[i].DType; t == tensor.Float16 {
		return c.BadIn(badDType, i, "want f32, got %s", t)
	}
	return nil
}

// scales checks the scales of quantised operands: one per head.
func (c *selfCheck) scales() error {
	for _, i := range [...]int{c.s.keyScale, c.s.valueScale, c.s.pScale} {
		if i != absent && (c.In[i].Rank() != 1 || c.In[i].Dim(0) != int64(c.p.HeadNum)) {
			return c.BadIn(badDim, i, "want [%d], got %s", c.p.HeadNum, c.In[i].Shape)
		}
	}
	return nil
}

// headSizes finds the sizes of key and value heads in layout BSND, before any
// rank is checked.
func (c *selfCheck) headSizes() error {
	if c.p.InputLayout != LayoutBSND {
		return nil
	}
	k, v := c.s.key, c.s.value
	if c.s.newKey != absent {
		k, v = c.s.newKey, c.s.newValue
	}
	rank := c.In[k].Rank()
	joined := c.p.bypass() || rank == 2 || (c.p.CalcType == SelfPrefixEncoder && rank == 3)
	var err error
	if c.keySize, err = c.headSize(k, joined); err != nil {
		return err
	}
	if c.p.MLAVHeadSize > 0 {
		c.valueSize = int64(c.p.MLAVHeadSize)
		if c.valueSize > c.keySize {
			return c.BadIn(badDim, k, "want head size at least mlaVHeadSize %d, got %d", c.valueSize, c.keySize)
		}
		return c.limitHeads(k, v)
	}
	if c.valueSize, err = c.headSize(v, joined); err != nil {
		return err
	}
	return c.limitHeads(k, v)
}

// headSize returns the head size of input i, whose last dimension holds all key
// heads when joined.
func (c *selfCheck) headSize(i int, joined bool) (int64, error) {
	last, heads := c.In[i].Dim(-1), c.p.keyHeads()
	if !joined {
		return last, nil
	}
	if last%heads != 0 {
		return 0, c.BadIn(badDim, i, "want a last dimension that %d heads divide, got %s", heads, c.In[i].Shape)
	}
	return last / heads, nil
}

// limitHeads checks the profile's largest head sizes.
func (c *selfCheck) limitHeads(k, v int) error {
	top, limited := c.Limit("headSize")
	if !limited {
		return nil
	}
	mla := c.p.MLAVHeadSize > 0
	wide := !mla && c.keySize != c.valueSize
	if wide {
		top, _ = c.Limit("wideHeadSize")
	}
	if (c.p.WindowSize > 0 && !wide) || c.p.ScaleType == ScaleLogN || (!mla && c.p.QuantType != QuantNone) {
		top, _ = c.Limit("plainHeadSize")
		if c.keySize != c.valueSize {
			return c.BadIn(badDim, v, "want head size %d as the keys have, got %d", c.keySize, c.valueSize)
		}
	}
	if c.p.MaskType.slopes() {
		top, _ = c.Limit("slopesHeadSize")
	}
	if c.keySize > top {
		return c.BadIn(badDim, k, "want head size at most %d, got %d", top, c.keySize)
	}
	if c.valueSize > top {
		return c.BadIn(badDim, v, "want head size at most %d, got %d", top, c.valueSize)
	}
	return nil
}

// windowMask checks the mask of a sliding window.
func (c *selfCheck) windowMask() error {
	i := c.s.mask
	if c.p.WindowSize == 0 || i == absent {
		return nil
	}
	if rank, limited := c.Limit("windowMaskRank"); limited {
		if err := c.InRank(badDim, i, int(rank)); err != nil {
			return err
		}
	}
	if side, limited := c.Limit("windowCompressSide"); limited && c.p.MaskType == SelfMaskSlidingWindowCompress {
		return c.InShape(badDim, i, tensor.ShapeOf(side, side))
	}
	return nil
}
