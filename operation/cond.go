package operation

import (
	"encoding/json"

	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// If is one of two operations, chosen by a condition that every Setup of the
// whole operation evaluates once. Both have equal numbers of inputs and
// outputs. If does not own them: closing it leaves them open; their parameters
// are those at the time of each planning.
//
// Source: ATB IfOperation. Errors: ErrInvalidParam at create when something is
// missing or the counts differ, and at Setup when the condition fails or
// panics.
type If struct {
	// Cond is evaluated at every Setup.
	Cond func() (bool, error)
	// Then runs when the condition holds, Else otherwise.
	Then, Else *Op
}

// Signature describes the operands of the branches; an operand is optional when
// either branch lets it be.
func (f *If) Signature() Signature {
	s := Signature{Name: "IfOperation"}
	if f == nil || f.Then == nil || f.Else == nil {
		return s
	}
	s.In, s.Out = append([]Port(nil), f.Then.sig.In...), append([]Port(nil), f.Then.sig.Out...)
	for i := range min(len(s.In), len(f.Else.sig.In)) {
		s.In[i].Optional = s.In[i].Optional || f.Else.sig.In[i].Optional
		s.In[i].Host = s.In[i].Host || f.Else.sig.In[i].Host
	}
	return s
}

// Validate checks that everything is there and fits.
func (f *If) Validate() error {
	if err := status.Given("if", "f", f); err != nil {
		return err
	}
	if err := status.Given("if", "Cond", f.Cond, "Then", f.Then, "Else", f.Else); err != nil {
		return err
	}
	if a, b := f.Then, f.Else; a.InputNum() != b.InputNum() || a.OutputNum() != b.OutputNum() {
		return status.Errorf(status.ErrInvalidParam, "want branches of equal arity, got %d inputs and %d outputs against %d and %d", a.InputNum(), a.OutputNum(), b.InputNum(), b.OutputNum())
	}
	return nil
}

// Check has nothing of its own: the chosen branch is checked when it is lowered.
func (f *If) Check(*Query) error { return nil }

// Infer infers with the chosen branch at Setup and with Then before.
func (f *If) Infer(q *Query) ([]tensor.Desc, error) {
	return f.branch(q).inferUnder(q.Profile, q.In, q.low)
}

func (f *If) branch(q *Query) *Op {
	if q.low != nil {
		if holds, ok := q.low.conditions[f]; ok && !holds {
			return f.Else
		}
	}
	return f.Then
}

// Lower lowers the chosen branch in the place of the If.
func (f *If) Lower(b *kernelgraph.Builder, q *Query) error {
	o := f.branch(q)
	c, err := o.checker(q.Profile)
	if err != nil {
		return err
	}
	in := make([]kernelgraph.Ref, len(q.In))
	for i := range in {
		in[i] = b.In(i)
	}
	out := make([]kernelgraph.Ref, len(q.Out))
	for i := range out {
		out[i] = b.Out(i)
	}
	bq := c.query(StageSetup, q.In, q.Out, q.values)
	bq.low, bq.from = q.low, q.from
	if bq.from == nil {
		bq.from = identity(q.In)
	}
	if err := c.check(o.spec, bq); err != nil {
		return err
	}
	bq.low.remember(o.spec, bq, bq.from)
	stream := b.Stream()
	if o.streamSet {
		stream = o.stream
	}
	return o.spec.Lower(b.Scope(o.sig.Name, o.sig.Name, in, out, stream), bq)
}

// Equal reports whether g is the same condition with the same branches.
func (f *If) Equal(g Spec) bool { return g == Spec(f) }

// conditions evaluates the condition, then those inside the chosen branch. The
// branches' versions are part of the key: If does not own them, so their
// updates do not reach its own version.
func (f *If) conditions(words []uint64, outcome map[*If]bool) ([]uint64, error) {
	holds, err := f.evaluate()
	if err != nil {
		return words, err
	}
	outcome[f] = holds
	o, word := f.Then, uint64(1)
	if !holds {
		o, word = f.Else, 0
	}
	if o.closed.Load() {
		return words, status.Errorf(status.ErrInvalidOperationAddr, "the operation of the chosen branch, %s, is closed", o.name)
	}
	words = append(words, word, o.version.Load())
	if c, ok := o.spec.(conditional); ok {
		return c.conditions(words, outcome)
	}
	return words, nil
}

func (f *If) evaluate() (holds bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = status.Errorf(status.ErrInvalidParam, "the condition panicked: %v", r)
		}
	}()
	if holds, err = f.Cond(); err != nil {
		return false, status.Errorf(status.ErrInvalidParam, "the condition failed: %w", err)
	}
	return holds, nil
}

// MarshalJSON writes both branches.
func (f *If) MarshalJSON() ([]byte, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"opA": f.Then.spec, "opB": f.Else.spec})
}
