package operation

import (
	"reflect"
	"slices"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/status"
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

// lowered is a spec with its query and the origins of its inputs.
type lowered struct {
	spec Spec
	q    *Query
	from []origin
}

// origin tells which elements of which input of the whole operation an input of
// a node is: n of them from `first` on. Input -1 is none of them.
type origin struct{ input, first, n int }

// none is the origin of what the operation computes itself.
var none = origin{input: -1}

// values returns the host values of the origin, nil where there are none.
func (o origin) values(byInput [][]int64) []int64 {
	if o.input < 0 || o.input >= len(byInput) || o.first+o.n > len(byInput[o.input]) {
		return nil
	}
	return byInput[o.input][o.first : o.first+o.n : o.first+o.n]
}

// bytes returns the host data of the origin, elements of `size` bytes.
func (o origin) bytes(byInput [][]byte, size int64) []byte {
	if o.input < 0 {
		return nil
	}
	lo, hi := int64(o.first)*size, int64(o.first+o.n)*size
	if b := byInput[o.input]; int64(len(b)) >= hi {
		return b[lo:hi:hi]
	}
	return nil
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

// identity is the origins of the whole operation's own inputs.
func identity(in []tensor.Desc) []origin {
	from := make([]origin, len(in))
	for i := range from {
		from[i] = origin{i, 0, int(in[i].Numel())}
	}
	return from
}

// remember notes a spec that depends on host values.
func (l *lowering) remember(s Spec, q *Query, from []origin) {
	_, checks := s.(ValueChecker)
	_, dynamic := s.(Dynamic)
	if l != nil && (checks || dynamic) && !l.repeats(s, q, from) {
		l.specs = append(l.specs, lowered{s, q, from})
	}
}

// repeats reports whether the same is remembered already: an equal spec with equal
// tensors and the same host values, such as those of every layer of a model.
func (l *lowering) repeats(s Spec, q *Query, from []origin) bool {
	return slices.ContainsFunc(l.specs, func(o lowered) bool {
		if reflect.TypeOf(o.spec) != reflect.TypeOf(s) || !slices.Equal(o.q.In, q.In) || !slices.Equal(o.q.Out, q.Out) {
			return false
		}
		for j := range from {
			if q.Sig.In[j].Host && o.from[j] != from[j] {
				return false
			}
		}
		return o.q.Profile == q.Profile && equalSpecs(o.spec, s)
	})
}

// mark returns how much is remembered; forget forgets what came later.
func (l *lowering) mark() (specs, foreign int) {
	if l == nil {
		return 0, 0
	}
	return len(l.specs), len(l.foreign)
}

func (l *lowering) forget(specs, foreign int) {
	if l != nil {
		l.specs, l.foreign = l.specs[:specs], l.foreign[:foreign]
	}
}

// refresh hands new host values to the remembered queries and lets the specs
// check them.
func (l *lowering) refresh(byInput [][]int64) error {
	for i := range l.specs {
		s := &l.specs[i]
		for j, from := range s.from {
			if j < len(s.q.values) && s.q.Sig.In[j].Host {
				s.q.values[j] = from.values(byInput)
			}
		}
		if err := checkValues(s.spec, s.q); err != nil {
			return err
		}
	}
	return nil
}

// planKeys appends the words of the specs whose plan depends on host values.
func (l *lowering) planKeys(words *[]uint64) error {
	for i := range l.specs {
		s := &l.specs[i]
		if d, ok := s.spec.(Dynamic); ok {
			if i := s.q.unknown(); i >= 0 {
				return s.q.BadIn(status.ErrInvalidTensorAddr, i, "its kernels depend on the values, which another node of the graph makes: want host data")
			}
			var err error
			if *words, err = d.PlanKey(*words, s.q); err != nil {
				return err
			}
		}
	}
	return nil
}

// conditional is implemented by specs with other operations in them: conditions
// evaluates each condition once, stores its outcome and appends words for it.
type conditional interface {
	conditions(words []uint64, outcome map[*If]bool) ([]uint64, error)
}

// foreignNode is a user's own operation in the tree.
type foreignNode struct {
	name string
	op   Operation
	pack VariantPack
	from []origin
	size int64
}

// setupForeign sets the users' own operations up again, with the host data at
// hand, and reports whether they fit the plan.
func (l *lowering) setupForeign(pack *VariantPack) (bool, error) {
	if len(l.foreign) == 0 {
		return true, nil
	}
	for i := range pack.In {
		l.host[i] = pack.In[i].Host
	}
	for i := range l.foreign {
		f := &l.foreign[i]
		size, err := f.setup(l)
		if err != nil {
			return false, inNode(err, f.name)
		}
		if size > f.size {
			return false, nil
		}
	}
	return true, nil
}

// setup calls the operation's Setup. The context's host side is lent meanwhile:
// the operation may run others inside.
func (f *foreignNode) setup(l *lowering) (size int64, err error) {
	for j, from := range f.from {
		f.pack.In[j].Host = from.bytes(l.host, f.pack.In[j].Desc.DType.Size())
	}
	l.c.Lend(atbctx.HostSide)
	defer func() {
		if rerr := l.c.Reclaim(atbctx.HostSide); err == nil {
			err = rerr
		}
	}()
	defer caught(&err, status.ErrInvalidParam, "Setup", f.op)
	return f.op.Setup(VariantPack{In: slices.Clone(f.pack.In), Out: slices.Clone(f.pack.Out)}, l.c)
}

// foreignCall runs a user's own operation as a node.
type foreignCall struct {
	op Operation
	c  *atbctx.Context
}

// Call implements runner.ForeignCall. Both sides of the context are lent
// meanwhile.
func (f *foreignCall) Call(in, out []device.Tensor, scratch device.Buffer) (err error) {
	const sides = atbctx.HostSide | atbctx.LaunchSide
	f.c.Lend(sides)
	defer func() {
		if rerr := f.c.Reclaim(sides); err == nil {
			err = rerr
		}
	}()
	defer caught(&err, status.ErrRuntimeFail, "Execute", f.op)
	return f.op.Execute(VariantPack{In: in, Out: out}, scratch, f.c)
}
