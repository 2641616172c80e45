package conformance

import (
	"errors"
	"fmt"
	"slices"

	"goatb/internal/conformance/reference"
	"goatb/status"
	"goatb/tensor"
)

// attempt is one case while it runs.
type attempt struct {
	engine   Engine
	maxBytes int64
	res      *CaseResult
	want     expectation

	op     string
	param  []byte
	in     []tensor.Desc
	out    []tensor.Desc
	tensor func(i int) Tensor
	// inferred replaces out by what InferShape returns.
	inferred bool
	golden   *golden
}

// size limits the integer inputs whose values are made for Setup.
const hostBytes = 1 << 20

// run takes the case through its stages.
func (a *attempt) run() {
	o, err := a.engine.Create(a.op, a.param)
	if a.ended(stageCreate, err) {
		if err == nil {
			a.close(o)
		}
		return
	}
	defer a.close(o)
	out, err := o.InferShape(a.in)
	if a.ended(stageInfer, err) {
		return
	}
	if a.inferred {
		a.out = out
	}
	in := make([]Tensor, len(a.in))
	for i, d := range a.in {
		in[i].Desc = d
		if isIndex(d.DType) && d.Bytes() <= hostBytes {
			in[i] = a.tensor(i)
		}
	}
	outs := make([]Tensor, len(a.out))
	for i, d := range a.out {
		outs[i].Desc = d
	}
	if a.ended(stageSetup, o.Setup(in, outs)) {
		return
	}
	if size := a.bytes(); a.golden == nil && size > a.maxBytes {
		a.res.Status, a.res.Got = StageOnly, "S:NO_ERROR"
		a.res.Reason = fmt.Sprintf("%d bytes are more than %d: stopped after setup", size, a.maxBytes)
		return
	}
	a.execute(o, in, outs)
}

// bytes is the size of all operands.
func (a *attempt) bytes() int64 {
	n := int64(0)
	for _, d := range slices.Concat(a.in, a.out) {
		n += d.Bytes()
	}
	return n
}

// close gives the operation back; that this fails is a failure of the case.
func (a *attempt) close(o Op) {
	if err := o.Close(); err != nil && a.res.Status != Failed {
		a.fail("close: " + err.Error())
	}
}

// execute runs the call and compares its results.
func (a *attempt) execute(o Op, in, outs []Tensor) {
	before := make([]Tensor, len(in))
	for i := range in {
		in[i] = a.tensor(i)
		before[i] = Tensor{Desc: in[i].Desc, Data: slices.Clone(in[i].Data)}
	}
	alias := a.aliases()
	for i := range outs {
		if src, ok := alias[i]; ok && src < len(in) && len(in[src].Data) == int(outs[i].Desc.Bytes()) {
			outs[i].Data = in[src].Data
			continue
		}
		outs[i].Data = reference.Bytes(outs[i].Desc.Bytes())
	}
	if a.ended(stageExecute, o.Execute(in, outs)) {
		return
	}
	a.res.Stage = stageCompare
	a.compare(in, before, outs)
}

// aliases maps outputs to the inputs whose memory they are.
func (a *attempt) aliases() map[int]int {
	if a.golden != nil {
		return a.golden.alias
	}
	return aliasOf(&reference.Input{Op: a.op, Param: a.param})
}

// compare compares results with the golden case or with the reference.
func (a *attempt) compare(in, before, outs []Tensor) {
	want, tolerance, err := a.expected(before)
	if err != nil {
		if errors.Is(err, reference.ErrNone) {
			a.res.Status, a.res.Got = StageOnly, "E:NO_ERROR"
			a.res.Reason = err.Error() + ": executed and not compared"
			return
		}
		a.fail(err.Error())
		return
	}
	if a.golden != nil && a.golden.inPlace {
		outs = in
	}
	if len(want) > len(outs) {
		a.fail(fmt.Sprintf("want %d outputs, got %d", len(want), len(outs)))
		return
	}
	a.res.Status, a.res.Got = Passed, status.OK.String()
	for i := range want {
		d := compare(&outs[i], &want[i], tolerance[i])
		if i == 0 || d.worst*a.res.Tolerance > a.res.MaxErr*tolerance[i] || d.why != "" {
			a.res.MaxErr, a.res.Tolerance = d.worst, tolerance[i]
		}
		if d.why != "" {
			a.fail(fmt.Sprintf("output %d: %s; largest error %.3g at element %d, tolerance %g", i, d.why, d.worst, d.index, tolerance[i]))
			return
		}
	}
}

// expected returns the outputs to compare with and the tolerance of each.
func (a *attempt) expected(before []Tensor) ([]Tensor, []float64, error) {
	if a.golden != nil {
		return a.golden.out, a.golden.tolerance, nil
	}
	c := &reference.Input{Op: a.op, Param: a.param, In: before, Out: a.out}
	want, err := reference.Eval(c)
	if err != nil {
		return nil, nil, err
	}
	if len(want) != len(a.out) {
		return nil, nil, fmt.Errorf("reference has %d outputs, the row %d", len(want), len(a.out))
	}
	class, sum := classOf(c)
	var tolerance []float64
	for i := range want {
		tolerance = append(tolerance, class.tolerance(a.out[i].DType, sum))
	}
	return want, tolerance, nil
}

// fail ends the case.
func (a *attempt) fail(reason string) {
	a.res.Status, a.res.Reason = Failed, reason
	if a.res.Got == "" {
		a.res.Got = status.OK.String()
	}
}

// ended notes the outcome of a stage and reports whether the case is over.
func (a *attempt) ended(stage string, err error) bool {
	a.res.Stage = stage
	if err == nil {
		if a.want.stage != stage {
			return false
		}
		a.res.Got = stage + ":" + status.OK.String()
		if a.want.code == status.OK {
			a.res.Status = Passed
		} else {
			a.fail("the stage succeeded")
		}
		return true
	}
	code, known := codeOf(err)
	a.res.Got = stage + ":" + code.String()
	switch {
	case !known:
		a.fail("error without a code: " + err.Error())
	case a.want.stage == stage && code == a.want.code:
		a.res.Status = Passed
	case a.want.stage == stage && a.want.code != status.OK && errors.Is(err, a.want.code):
		a.res.Status, a.res.Got = Passed, stage+":"+a.want.code.String()
	default:
		a.fail(err.Error())
	}
	return true
}

// codeOf returns the code that an error carries.
func codeOf(err error) (status.Code, bool) {
	if e, ok := errors.AsType[*status.OpError](err); ok {
		return e.Code, true
	}
	if c, ok := errors.AsType[status.Code](err); ok {
		return c, true
	}
	return status.ErrInternal, false
}
