package norm

import (
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// xIn is the position of x in every kind.
const xIn = 0

// Check checks types, shapes and parameters in ATB's order, at Setup the shapes
// of the outputs before them.
func (n RMSNorm) Check(q *operation.Query) error {
	k := n.kind()
	if q.Stage == operation.StageSetup {
		if err := n.checkOutputs(q, k.ports.gamma); err != nil {
			return err
		}
	}
	if err := n.checkTypes(q); err != nil {
		return err
	}
	if err := n.checkShapes(q, &k.ports); err != nil {
		return err
	}
	if err := n.checkLastDim(q); err != nil {
		return err
	}
	return n.checkParams()
}

// checkOutputs compares the outputs that are like x, and rstd.
func (n *RMSNorm) checkOutputs(q *operation.Query, gammaIn int) error {
	x := q.In[xIn].Shape
	likeX := len(q.Out)
	if n.dynamic() || n.rstd() {
		likeX = 1
	}
	for i := range likeX {
		if err := q.OutShape(status.ErrInvalidTensorSize, status.ErrInvalidTensorDim, i, x); err != nil {
			return err
		}
	}
	if covered := q.In[gammaIn].Rank(); len(q.Out) == 2 && n.rstd() && covered <= x.Rank() {
		return q.OutShape(status.ErrInvalidTensorDim, status.ErrInvalidTensorDim, 1, rstdShape(x, covered))
	}
	return nil
}

// rstdShape is x with 1 in place of its last `covered` dimensions.
func rstdShape(x tensor.Shape, covered int) tensor.Shape {
	for i := range covered {
		x = x.With(-1-i, 1)
	}
	return x
}

func (n *RMSNorm) checkTypes(q *operation.Query) error {
	x := &q.In[xIn]
	if _, ok := q.Limit("rstdOfFloat32"); ok && n.rstd() && x.DType != tensor.Float32 {
		return q.BadIn(status.ErrInvalidTensorDType, xIn, "rstd wants f32, got %s", x)
	}
	if n.half() && x.DType != tensor.Float16 {
		return q.BadIn(status.ErrInvalidTensorDType, xIn, "precisionMode %d wants f16, got %s", PrecisionHalf, x)
	}
	return nil
}

func (n *RMSNorm) half() bool {
	return n.LayerType == Plain && n.Norm.PrecisionMode == PrecisionHalf
}

func (n *RMSNorm) checkShapes(q *operation.Query, p *rmsPorts) error {
	if err := n.checkGamma(q, p.gamma); err != nil {
		return err
	}
	if p.bias >= 0 {
		if err := checkWeight(q, p.bias); err != nil {
			return err
		}
	}
	if p.residual >= 0 {
		if err := q.InShape(status.ErrInvalidTensorDim, p.residual, q.In[xIn].Shape); err != nil {
			return err
		}
	}
	if p.beta >= 0 {
		if gamma := &q.In[p.gamma]; q.In[p.beta] != *gamma {
			return q.BadIn(status.ErrInvalidTensorDim, p.beta, "want %s as gamma is, got %s", gamma, &q.In[p.beta])
		}
	}
	for _, i := range [...]int{p.scale, p.offset} {
		if i < 0 {
			continue
		}
		if err := q.InShape(status.ErrInvalidTensorDim, i, tensor.ShapeOf(1)); err != nil {
			return err
		}
	}
	return nil
}

// checkGamma checks gamma: the trailing axes of x with rstd, else a weight.
func (n *RMSNorm) checkGamma(q *operation.Query, i int) error {
	x, gamma := &q.In[xIn], &q.In[i]
	if n.rstd() {
		r, g := x.Rank(), gamma.Rank()
		if g > r || x.Shape.Slice(r-g, r) != gamma.Shape {
			return q.BadIn(status.ErrInvalidTensorDim, i, "want the trailing dimensions of x %s, got %s", x.Shape, gamma.Shape)
		}
		return nil
	}
	if n.LayerType == Post && n.quantised() {
		if err := q.InRank(status.ErrInvalidTensorDim, i, 1, 2); err != nil {
			return err
		}
	}
	return checkWeight(q, i)
}

// checkWeight checks an input that is as long as the last axis of x, with
// leading axes of 1.
func checkWeight(q *operation.Query, i int) error {
	x, w := &q.In[xIn], &q.In[i]
	if w.Dim(-1) != x.Dim(-1) || w.Numel() != w.Dim(-1) {
		return q.BadIn(status.ErrInvalidTensorDim, i, "want [%d] or 1s before it as x is %s, got %s", x.Dim(-1), x.Shape, w.Shape)
	}
	return nil
}

// checkLastDim checks the profile's limits of the last axis.
func (n *RMSNorm) checkLastDim(q *operation.Query) error {
	x, code := &q.In[xIn], status.ErrInvalidTensorSize
	if n.LayerType == Post && n.quantised() {
		code = status.ErrInvalidTensorDim
		if m, ok := q.Limit("postQuantLastDimMultiple"); ok && x.Dim(-1)%m != 0 {
			return q.BadIn(code, xIn, "want a last dimension that is a multiple of %d, got %s", m, x.Shape)
		}
	}
	if m, ok := q.Limit("lastDimBytes"); ok && x.Dim(-1)*x.DType.Size()%m != 0 {
		return q.BadIn(code, xIn, "want a last dimension of a multiple of %d bytes, got %s", m, x)
	}
	if most, ok := q.Limit("dynamicQuantLastDim"); ok && n.dynamic() && x.Dim(-1) > most {
		return q.BadIn(code, xIn, "want a last dimension of at most %d, got %s", most, x.Shape)
	}
	return nil
}

// checkParams refuses parameters that exclude each other.
func (n *RMSNorm) checkParams() error {
	gemma := n.LayerType == Plain && n.Norm.ModelType == ModelGemma
	for _, c := range [...]struct {
		a, b bool
		text string
	}{
		{gemma, n.quantised(), "modelType gemma and quantType int8"},
		{gemma, n.half(), "modelType gemma and precisionMode half"},
		{gemma, n.rstd(), "modelType gemma and rstd"},
		{n.half(), n.quantised(), "precisionMode half and quantType int8"},
		{n.half(), n.rstd(), "precisionMode half and rstd"},
		{n.biased(), n.quantised(), "hasBias and quantType int8"},
		{n.rstd(), n.quantised(), "rstd and quantType int8"},
	} {
		if c.a && c.b {
			return status.Errorf(status.ErrInvalidParam, "%s exclude each other", c.text)
		}
	}
	return nil
}

// Infer returns the outputs' descriptors.
func (n RMSNorm) Infer(q *operation.Query) ([]tensor.Desc, error) {
	x := q.In[xIn]
	y := x
	if n.quantised() {
		y.DType = tensor.Int8
	}
	k := n.kind()
	switch {
	case n.rstd():
		return []tensor.Desc{y, {DType: tensor.Float32, Shape: rstdShape(x.Shape, q.In[k.ports.gamma].Rank())}}, nil
	case n.dynamic():
		return []tensor.Desc{y, {DType: tensor.Float32, Shape: rowShape(x.Shape)}}, nil
	case len(k.out) == 2:
		return []tensor.Desc{y, x}, nil
	}
	return []tensor.Desc{y}, nil
}

// rowShape is a shape without its last axis; [1] for a single row.
func rowShape(s tensor.Shape) tensor.Shape {
	if s.Rank() == 1 {
		return tensor.ShapeOf(1)
	}
	return s.Slice(0, s.Rank()-1)
}
