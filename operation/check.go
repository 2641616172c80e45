package operation

import (
	"goatb/status"
	"goatb/tensor"
)

// InferShape checks input descriptors as the operation's InferShape does and
// returns the output descriptors. The order of checks is ATB's: number of
// inputs, rank and size of each, the dtype and layout table, the operation's
// own rules.
func InferShape(s Spec, p *Profile, in []tensor.Desc) ([]tensor.Desc, error) {
	c, err := checkerOf("infer shape", s, p)
	if err != nil {
		return nil, err
	}
	out, err := c.infer(s, in, nil)
	return out, status.Place(err, status.ErrInvalidParam, c.sig.Name, StageInfer.String(), "")
}

// checkerOf makes the checker of a spec that no operation has looked at: nil, and
// parameters that Validate refuses, are ErrInvalidParam.
func checkerOf(call string, s Spec, p *Profile) (*checker, error) {
	if err := status.Given(call, "spec", s, "profile", p); err != nil {
		return nil, err
	}
	sig := s.Signature()
	if err := s.Validate(); err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, sig.Name, call, "")
	}
	return newChecker(&sig, p)
}

// CheckSetup checks input and output descriptors and host values as Setup does.
// values holds the host values by input, nil entries where there are none.
func CheckSetup(s Spec, p *Profile, in, out []tensor.Desc, values [][]int64) error {
	c, err := checkerOf("check setup", s, p)
	if err != nil {
		return err
	}
	_, err = c.setup(s, in, out, values)
	return err
}

// checker makes the checks that every operation shares. It is immutable.
type checker struct {
	sig     *Signature
	profile *Profile
	combos  []Combo
}

func newChecker(sig *Signature, p *Profile) (*checker, error) {
	c := &checker{sig: sig, profile: p}
	if sig.Variant == "" {
		return c, nil // a graph: its nodes have tables
	}
	if p.rows == nil {
		var err error
		if c.combos, err = ParseCombos(sig.Native); err != nil {
			return nil, status.Errorf(status.ErrInternal, "native combinations of %s: %w", sig.Name, err)
		}
		return c, nil
	}
	rows, ok := p.rows[sig.Variant]
	if !ok {
		return nil, status.Errorf(status.ErrInvalidTensorIniMatch, "profile %s has no table for %s", p.name, sig.Variant)
	}
	c.combos = rows
	return c, nil
}

func (c *checker) query(stage Stage, in, out []tensor.Desc, values [][]int64) *Query {
	return &Query{Stage: stage, In: in, Out: out, Sig: c.sig, Profile: c.profile, values: values}
}

// infer makes the checks of InferShape and infers; low is there inside a Setup.
func (c *checker) infer(s Spec, in []tensor.Desc, low *lowering) ([]tensor.Desc, error) {
	q := c.query(StageInfer, in, nil, nil)
	q.low = low
	if err := c.inputs(q); err != nil {
		return nil, err
	}
	if err := s.Check(q); err != nil {
		return nil, err
	}
	out, err := s.Infer(q)
	if err == nil && len(out) != len(c.sig.Out) {
		err = status.Errorf(status.ErrInternal, "inferred %d outputs, want %d", len(out), len(c.sig.Out))
	}
	return out, err
}

// setup makes the checks of Setup and returns the query that lowering reads.
func (c *checker) setup(s Spec, in, out []tensor.Desc, values [][]int64) (*Query, error) {
	q := c.query(StageSetup, in, out, values)
	return q, status.Place(c.check(s, q), status.ErrInvalidParam, c.sig.Name, StageSetup.String(), "")
}

// check makes every check of Setup on a query.
func (c *checker) check(s Spec, q *Query) error {
	err := c.operands(q)
	if err == nil {
		err = s.Check(q)
	}
	if err == nil {
		err = c.outputs(s, q)
	}
	if err == nil {
		err = checkValues(s, q)
	}
	return err
}

// checkValues lets the spec check the host values, when all are there.
func checkValues(s Spec, q *Query) error {
	v, ok := s.(ValueChecker)
	if !ok {
		return nil
	}
	if q.unknown() >= 0 {
		return nil
	}
	return v.CheckValues(q)
}

// inputs makes the shared checks of InferShape.
func (c *checker) inputs(q *Query) error {
	if err := wantCount("inputs", len(q.In), len(c.sig.In)); err != nil {
		return err
	}
	for i := range q.In {
		if err := checkPort(q.InName, i, &q.In[i], c.sig.In); err != nil {
			return err
		}
	}
	return c.table(q.In, nil)
}

// operands makes the shared checks of Setup.
func (c *checker) operands(q *Query) error {
	if err := wantCount("inputs", len(q.In), len(c.sig.In)); err != nil {
		return err
	}
	if err := wantCount("outputs", len(q.Out), len(c.sig.Out)); err != nil {
		return err
	}
	for i := range q.In {
		if err := checkPort(q.InName, i, &q.In[i], c.sig.In); err != nil {
			return err
		}
	}
	for i := range q.Out {
		if err := checkPort(q.OutName, i, &q.Out[i], c.sig.Out); err != nil {
			return err
		}
	}
	if c.sig.TableInputsOnly || len(c.sig.Out) == 0 {
		return c.table(q.In, nil)
	}
	return c.table(q.In, q.Out)
}

// wantCount checks a number of operands; of outputs, it has ATB's code besides its
// own.
func wantCount(what string, got, want int) error {
	switch {
	case got == want:
		return nil
	case what == "inputs":
		return status.Errorf(status.ErrInvalidInTensorNum, "want %d %s, got %d", want, what, got)
	}
	return status.Errorf(status.ErrInvalidTensorNum, "want %d %s, got %d", want, what, got).Or(status.ErrInvalidInTensorNum)
}

func checkPort(name func(int) string, i int, d *tensor.Desc, ports []Port) error {
	if ports[i].Optional && d.Empty() {
		return nil
	}
	if err := tensor.CheckDesc(d); err != nil {
		return err.On(name(i))
	}
	return nil
}

func (c *checker) table(in, out []tensor.Desc) error {
	if c.combos == nil {
		return nil
	}
	for i := range c.combos {
		if c.combos[i].matches(in, out) {
			return nil
		}
	}
	return c.tableError(in, out)
}

// outputs compares the outputs with the inferred ones: they must have the same
// size always, since kernels write that many bytes, and be equal where the
// profile does not leave the shape to the operation.
func (c *checker) outputs(s Spec, q *Query) error {
	inferred, err := s.Infer(q)
	if err != nil {
		return err
	}
	if err := wantCount("inferred outputs", len(inferred), len(q.Out)); err != nil {
		return err
	}
	for i := range q.Out {
		got, want := &q.Out[i], &inferred[i]
		if got.Empty() && (want.Empty() || c.sig.Out[i].Optional) {
			continue
		}
		if got.Bytes() != want.Bytes() || (c.profile.rows == nil && *got != *want) {
			return wrongOutput(got, want).On(q.OutName(i))
		}
	}
	return nil
}

// wrongOutput is the error of an output that is not the inferred one, with the code
// of what is wrong; another rank is a wrong dimension too.
func wrongOutput(got, want *tensor.Desc) *status.OpError {
	code, also := status.ErrInvalidTensorDim, status.OK
	switch {
	case got.DType != want.DType:
		code = status.ErrInvalidTensorDType
	case got.Format != want.Format:
		code = status.ErrInvalidTensorFormat
	case got.Rank() != want.Rank():
		code, also = status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim
	}
	return status.Errorf(code, "want %s, got %s", want, got).Or(also)
}
