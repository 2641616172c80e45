package attention

import (
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// supports checks that the operands are there, have types that the kernels read
// and hold every element that the parameters can reach.
func supports(p *kernel.Problem, a Params) error {
	if err := supportInputs(p, &a); err != nil {
		return err
	}
	o := &p.Out[0]
	if n := reach(a.Out, 0, a.Batch, a.Rows, a.Heads, a.ValueSize); !isFloat(o.DType) || n > o.Numel() {
		return status.Errorf(status.ErrInvalidParam, "want a float output with the %d elements of its rows, got %s", n, o)
	}
	return nil
}

// supportParts checks the operands of a kernel that writes parts.
func supportParts(p *kernel.Problem, a Params) error {
	if err := supportInputs(p, &a); err != nil {
		return err
	}
	if a.Quant != NoQuant {
		return status.Errorf(status.ErrInvalidParam, "weights are rounded with the maximum and the sum of a whole row, so its keys are not done in parts")
	}
	if !a.dense() {
		return status.Errorf(status.ErrInvalidParam, "want output rows side by side, got strides %+v", a.Out)
	}
	if want := a.PartsDesc(); p.Out[0] != want {
		return status.Errorf(status.ErrInvalidParam, "want an output %s, got %s", want, p.Out[0])
	}
	return nil
}

func supportInputs(p *kernel.Problem, a *Params) error {
	if len(p.In) != NumIn || len(p.Out) != 1 {
		return status.Errorf(status.ErrInvalidParam, "want %d inputs and 1 output, got %d and %d", NumIn, len(p.In), len(p.Out))
	}
	if a.KeyHeads < 1 || a.Heads < 1 || a.Heads%a.KeyHeads != 0 || a.KeySize < 1 || a.ValueSize < 1 || a.Batch < 1 {
		return status.Errorf(status.ErrInvalidParam, "want heads in equal groups and sizes of at least 1, got %d heads on %d of sizes %d and %d, batch %d",
			a.Heads, a.KeyHeads, a.KeySize, a.ValueSize, a.Batch)
	}
	if a.Ring && (a.Source != Cache || a.Window < 1) {
		return status.Errorf(status.ErrInvalidParam, "a ring cache needs a window, got %d", a.Window)
	}
	for _, check := range [...]func(*kernel.Problem, *Params) error{supportTypes, supportRows, supportBias, supportFactors} {
		if err := check(p, a); err != nil {
			return err
		}
	}
	return nil
}

func isFloat(t tensor.DType) bool {
	return t == tensor.Float32 || t == tensor.Float16 || t == tensor.BFloat16
}

func supportTypes(p *kernel.Problem, a *Params) error {
	for _, i := range [...]int{InQuery, InKey, InValue, InNewKey, InNewValue} {
		d := &p.In[i]
		if d.Empty() && (i == InNewKey || i == InNewValue) && !a.NewKeys {
			continue
		}
		if want := a.Quant != NoQuant; (want && d.DType != tensor.Int8) || (!want && !isFloat(d.DType)) {
			return status.Errorf(status.ErrInvalidParam, "input %d: want float rows, or int8 ones with quantisation, got %s", i, d)
		}
	}
	return nil
}

// reach returns one more than the last element of rows that strides locate.
func reach(s Strides, layers, batch, rows, heads, size int64) int64 {
	return max(layers-1, 0)*s.Layer + (batch-1)*s.Batch + (rows-1)*s.Row + (heads-1)*s.Head + size
}

func supportRows(p *kernel.Problem, a *Params) error {
	batch := a.Batch
	if a.Source == Paged {
		batch = a.Blocks
		t := &p.In[InTable]
		if t.DType != tensor.Int32 || a.Columns < 1 || t.Numel() != a.Batch*a.Columns {
			return status.Errorf(status.ErrInvalidParam, "want an int32 block table of %d rows and %d columns, got %s", a.Batch, a.Columns, t)
		}
	}
	for _, x := range [...]struct {
		name  string
		d     *tensor.Desc
		reach int64
	}{
		{"query", &p.In[InQuery], reach(a.Query, 0, a.Batch, a.Rows, a.Heads, a.KeySize)},
		{"key", &p.In[InKey], reach(a.Key, a.Layers, batch, a.Slots, a.KeyHeads, a.KeySize)},
		{"value", &p.In[InValue], reach(a.Value, a.Layers, batch, a.Slots, a.KeyHeads, a.ValueSize)},
	} {
		if x.reach > x.d.Numel() {
			return status.Errorf(status.ErrInvalidParam, "%s: %s has fewer than the %d elements of its rows", x.name, x.d, x.reach)
		}
	}
	if !a.NewKeys {
		return nil
	}
	k, v := &p.In[InNewKey], &p.In[InNewValue]
	if a.Source != Cache || a.Query.Batch != 0 ||
		reach(a.NewKey, 0, 1, a.Rows, a.KeyHeads, a.KeySize) > k.Numel() || reach(a.NewValue, 0, 1, a.Rows, a.KeyHeads, a.ValueSize) > v.Numel() {
		return status.Errorf(status.ErrInvalidParam, "want new keys and values for %d query rows without padding, got %s and %s", a.Rows, k, v)
	}
	return nil
}

func supportBias(p *kernel.Problem, a *Params) error {
	if a.Bias == NoBias {
		return nil
	}
	d, m := &p.In[InMask], &a.Mask
	if !isFloat(d.DType) || m.Rows < 1 || m.Cols < 1 {
		return status.Errorf(status.ErrInvalidParam, "want a float mask, got %s", d)
	}
	cols := m.Cols
	if m.Block > 0 {
		cols = (m.Cols-1)/maskBlock*m.Block + maskBlock
	}
	if (a.Batch-1)*m.Batch+(a.Heads-1)*m.Head+(m.Rows-1)*m.Row+cols > d.Numel() {
		return status.Errorf(status.ErrInvalidParam, "mask %s has fewer elements than %+v locates", d, *m)
	}
	if a.Bias == MaskBias {
		return nil
	}
	if s := &p.In[InSlopes]; !isFloat(s.DType) || s.Numel() < a.Heads {
		return status.Errorf(status.ErrInvalidParam, "want slopes for %d heads, got %s", a.Heads, s)
	}
	return nil
}

func supportFactors(p *kernel.Problem, a *Params) error {
	if f := &p.In[InFactor]; a.Factor != NoFactor && (!isFloat(f.DType) || f.Numel() != a.FactorLen || (a.Factor == BatchFactor && a.FactorLen < a.Batch)) {
		return status.Errorf(status.ErrInvalidParam, "want %d factors of the scale for %d sequences, got %s", a.FactorLen, a.Batch, f)
	}
	if a.Quant == NoQuant {
		return nil
	}
	for _, i := range [...]int{InKeyScale, InValueScale, InProbScale} {
		if d := &p.In[i]; (i != InProbScale || a.Quant == Offline) && (d.DType != tensor.Float32 || d.Numel() < a.Heads) {
			return status.Errorf(status.ErrInvalidParam, "input %d: want f32 scales for %d heads, got %s", i, a.Heads, d)
		}
	}
	return nil
}
