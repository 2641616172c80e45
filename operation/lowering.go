package operation

import (
	atbctx "goatb/context"
	"goatb/device"
	"goatb/tensor"
)

// lowering remembers what a plan needs checked at every later Setup: specs that
// read host values, conditions, and users' own operations. It is filled while
// the operation tree is lowered.
type lowering struct {
	c *atbctx.Context
	// specs are those with host values, with their queries.
	specs []lowered
	// conditions holds the outcome of each condition of the tree at this Setup.
	conditions map[*If]bool
	foreign    []foreignNode
	// host is the host data of the whole operation's inputs.
	host [][]byte
}

// lowered is a spec with its query and, for each of its inputs, the input of
// the whole operation that it is, or -1.
type lowered struct {
	spec Spec
	q    *Query
	from []int
}

func newLowering(c *atbctx.Context, in []device.Tensor) *lowering {
	l := &lowering{c: c, host: make([][]byte, len(in))}
	for i := range in {
		l.host[i] = in[i].Host
	}
	return l
}

// tensorsOf makes tensors without data.
func tensorsOf(ds []tensor.Desc) []device.Tensor {
	ts := make([]device.Tensor, len(ds))
	for i := range ds {
		ts[i].Desc = ds[i]
	}
	return ts
}

func identity(n int) []int {
	from := make([]int, n)
	for i := range from {
		from[i] = i
	}
	return from
}

// remember notes a spec that depends on host values.
func (l *lowering) remember(s Spec, q *Query, from []int) {
	_, checks := s.(ValueChecker)
	_, dynamic := s.(Dynamic)
	if l != nil && (checks || dynamic) {
		l.specs = append(l.specs, lowered{s, q, from})
	}
}

// refresh hands new host values to the remembered queries.
func (l *lowering) refresh(v *hostValues) {
	for i := range l.specs {
		s := &l.specs[i]
		for j, from := range s.from {
			if from >= 0 && j < len(s.q.values) {
				s.q.values[j] = v.byInput[from]
			}
		}
	}
}

func (l *lowering) checkValues() error {
	for i := range l.specs {
		s := &l.specs[i]
		if v, ok := s.spec.(ValueChecker); ok {
			if err := v.CheckValues(s.q); err != nil {
				return err
			}
		}
	}
	return nil
}

// planKeys appends the words of the specs whose plan depends on host values.
func (l *lowering) planKeys(words *[]uint64) error {
	for i := range l.specs {
		s := &l.specs[i]
		if d, ok := s.spec.(Dynamic); ok {
			var err error
			if *words, err = d.PlanKey(*words, s.q); err != nil {
				return err
			}
		}
	}
	return nil
}

// conditional is implemented by specs with conditions in them: conditions
// evaluates each once, stores its outcome and appends words for it.
type conditional interface {
	conditions(words []uint64, outcome map[*If]bool) ([]uint64, error)
}

// foreignNode is a user's own operation in the tree.
type foreignNode struct {
	op   Operation
	pack VariantPack
	from []int
	size int64
}

// setupForeign sets the users' own operations up again, with the host data at
// hand, and reports whether they fit the plan.
func (l *lowering) setupForeign(pack *VariantPack, c *atbctx.Context) (bool, error) {
	for i := range l.foreign {
		f := &l.foreign[i]
		for j, from := range f.from {
			if from >= 0 {
				f.pack.In[j].Host = pack.In[from].Host
			}
		}
		size, err := f.setup(c)
		if err != nil {
			return false, err
		}
		if size > f.size {
			return false, nil
		}
	}
	return true, nil
}

// setup calls the operation's Setup. The context's host side is free meanwhile:
// the operation may run others inside.
func (f *foreignNode) setup(c *atbctx.Context) (int64, error) {
	c.Leave(atbctx.HostSide)
	size, err := f.op.Setup(f.pack, c)
	if eerr := c.Enter(atbctx.HostSide); err == nil {
		err = eerr
	}
	return size, err
}

// foreignCall runs a user's own operation as a node.
type foreignCall struct {
	op Operation
	c  *atbctx.Context
}

// Call implements runner.ForeignCall. The context is free meanwhile.
func (f *foreignCall) Call(in, out []device.Tensor, scratch device.Buffer) error {
	f.c.Leave(atbctx.HostSide | atbctx.LaunchSide)
	err := f.op.Execute(VariantPack{In: in, Out: out}, scratch, f.c)
	if eerr := f.c.Enter(atbctx.HostSide | atbctx.LaunchSide); err == nil {
		err = eerr
	}
	return err
}
