package operation

import (
	"fmt"
	"strconv"

	"goatb/status"
	"goatb/tensor"
)

// Stage is the call that a check belongs to.
type Stage uint8

// Stages.
const (
	StageInfer Stage = iota
	StageSetup
	StageExecute
)

// String returns the stage's name in errors.
func (s Stage) String() string {
	if s > StageExecute {
		return "stage " + strconv.Itoa(int(s))
	}
	return [...]string{"infer shape", "setup", "execute"}[s]
}

// Query is what an operation is asked about: descriptors, host values, profile. The
// library makes it, for the signature of the operation that it asks; operands that
// are not there are empty to its methods.
type Query struct {
	Stage Stage
	// In has one descriptor per input port, empty for an absent one. Out is
	// set at stage setup.
	In, Out []tensor.Desc
	// Sig is the operation's signature.
	Sig *Signature
	// Profile holds the limits to check.
	Profile *Profile
	// values holds the host values by input, nil where there are none.
	values [][]int64
	// low gathers what later Setups check again; nil outside a context.
	low *lowering
	// from maps inputs to those of the whole operation, nil for itself.
	from []origin
}

// Has reports whether input i is there.
func (q *Query) Has(i int) bool { return !q.in(i).Empty() }

// in and out return descriptors, nil where there is none.
func (q *Query) in(i int) *tensor.Desc {
	if q == nil || uint(i) >= uint(len(q.In)) {
		return nil
	}
	return &q.In[i]
}

func (q *Query) out(i int) *tensor.Desc {
	if q == nil || uint(i) >= uint(len(q.Out)) {
		return nil
	}
	return &q.Out[i]
}

// sig returns the signature, an empty one where there is none.
func (q *Query) sig() *Signature {
	if q == nil || q.Sig == nil {
		return &Signature{}
	}
	return q.Sig
}

// Values returns the host values of input i, and false when the caller passed
// none: at InferShape, or for a tensor without host data.
func (q *Query) Values(i int) ([]int64, bool) {
	if q == nil || uint(i) >= uint(len(q.values)) || q.values[i] == nil {
		return nil, false
	}
	return q.values[i], true
}

// unknown returns the first host input that is there without its values, -1 for
// none: nobody has passed them, or another node of a graph makes them.
func (q *Query) unknown() int {
	for i, p := range q.Sig.In {
		if _, there := q.Values(i); p.Host && q.Has(i) && !there {
			return i
		}
	}
	return -1
}

// WithValues returns a copy of q that carries host values by input.
func (q *Query) WithValues(values [][]int64) *Query {
	var c Query
	if q != nil {
		c = *q
	}
	c.values = values
	return &c
}

// Limit returns a limit of the profile for this operation, and false when the
// profile does not limit it.
func (q *Query) Limit(name string) (int64, bool) {
	if q == nil {
		return 0, false
	}
	return q.Profile.Limit(q.sig().Name, name)
}

// InName names input i in errors: "input 1 (gamma)".
func (q *Query) InName(i int) string { return portName("input", i, q.sig().In) }

// OutName names output i in errors: "output 0 (y)".
func (q *Query) OutName(i int) string { return portName("output", i, q.sig().Out) }

func portName(kind string, i int, ports []Port) string {
	if uint(i) < uint(len(ports)) && ports[i].Name != "" {
		return fmt.Sprintf("%s %d (%s)", kind, i, ports[i].Name)
	}
	return fmt.Sprintf("%s %d", kind, i)
}

// BadIn returns an error about input i.
func (q *Query) BadIn(code status.Code, i int, format string, args ...any) error {
	return status.Errorf(code, format, args...).On(q.InName(i))
}

// BadOut returns an error about output i.
func (q *Query) BadOut(code status.Code, i int, format string, args ...any) error {
	return status.Errorf(code, format, args...).On(q.OutName(i))
}

// InRank checks the rank of input i against the ranks allowed.
func (q *Query) InRank(code status.Code, i int, ranks ...int) error {
	return wantRank(code, q.InName, i, q.in(i), ranks)
}

// OutRank checks the rank of output i against the ranks allowed.
func (q *Query) OutRank(code status.Code, i int, ranks ...int) error {
	return wantRank(code, q.OutName, i, q.out(i), ranks)
}

func wantRank(code status.Code, name func(int) string, i int, d *tensor.Desc, ranks []int) error {
	for _, r := range ranks {
		if d.Rank() == r {
			return nil
		}
	}
	if d == nil {
		return status.Errorf(code, "want rank %s, there is no such operand", anyOf(ranks)).On(name(i))
	}
	return status.Errorf(code, "want rank %s, got %s", anyOf(ranks), d).On(name(i))
}

func anyOf(ranks []int) string {
	s := ""
	for i, r := range ranks {
		switch {
		case i == 0:
		case i == len(ranks)-1:
			s += " or "
		default:
			s += ", "
		}
		s += fmt.Sprint(r)
	}
	return s
}

// InShape checks that input i has exactly the shape want.
func (q *Query) InShape(code status.Code, i int, want tensor.Shape) error {
	d := q.in(i)
	switch {
	case d == nil:
		return q.BadIn(code, i, "want %s, there is no such operand", want)
	case d.Shape != want:
		return q.BadIn(code, i, "want %s, got %s", want, d.Shape)
	}
	return nil
}

// OutShape checks output i at setup: rankCode for another rank, dimCode for
// another dimension.
func (q *Query) OutShape(rankCode, dimCode status.Code, i int, want tensor.Shape) error {
	d := q.out(i)
	if d == nil {
		return q.BadOut(rankCode, i, "want %s, there is no such operand", want)
	}
	got := d.Shape
	if got == want {
		return nil
	}
	code := dimCode
	if got.Rank() != want.Rank() {
		code = rankCode
	}
	return q.BadOut(code, i, "want %s, got %s", want, got)
}
