package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goatb/internal/rowkeys"
	"goatb/status"
	"goatb/tensor"
)

// Row is a line of a suite: its fields as text, blanks removed.
type Row struct {
	// Suite is the file's name without ".csv", Index the position among the
	// data rows.
	Suite string
	Index int
	// fields holds the columns by header name.
	fields map[string]string
	// Dirty says why the line cannot be read as a row; it is empty for others.
	Dirty string
}

// Field returns a column, empty when there is none.
func (r *Row) Field(name string) string { return r.fields[name] }

// Op returns the operation's type: the name up to its tag.
func (r *Row) Op() string {
	name, _, _ := strings.Cut(r.Field("OpName"), "_")
	return name
}

// params returns the operation's parameters, without the keys of rows that are
// none.
func (r *Row) params() []byte { return rowkeys.Drop(r.Op(), []byte(r.Field("OpParam"))) }

// boards returns the boards that the row is valid for; nil means all but two
// old ones.
func (r *Row) boards() []string {
	if r.Field("SocVersion") == "" {
		return nil
	}
	return strings.Split(r.Field("SocVersion"), ",")
}

// board is the board whose rows run.
const board = "Ascend910B"

// forBoard reports whether the row is valid for the board.
func (r *Row) forBoard() bool {
	b := r.boards()
	return b == nil || slices.Contains(b, board)
}

// Stages of a row.
const (
	stageCreate  = "C"
	stageInfer   = "I"
	stageSetup   = "S"
	stageExecute = "E"
	// stageCompare is the comparison of results.
	stageCompare = "compare"
)

// expectation is what a row wants: success with matching results, or the given
// outcome at a stage.
type expectation struct {
	text  string
	stage string
	code  status.Code
}

// parseExpectation reads "NO_ERROR" or "I:ERROR_NAME".
func parseExpectation(text string) (expectation, error) {
	e := expectation{text: text}
	name := text
	if stage, rest, ok := strings.Cut(text, ":"); ok {
		e.stage, name = stage, rest
		if !slices.Contains([]string{stageCreate, stageInfer, stageSetup, stageExecute}, stage) {
			return e, fmt.Errorf("expected error %q: unknown stage", text)
		}
	}
	code, ok := status.Parse(name)
	if !ok || e.stage == "" && code != status.OK {
		return e, fmt.Errorf("expected error %q: unknown outcome", text)
	}
	e.code = code
	return e, nil
}

// succeeds reports whether the row wants matching results.
func (e *expectation) succeeds() bool { return e.stage == "" }

// list splits a field of a number of operands; a missing last element and extra
// ones are let pass.
func list(text string, n int) []string {
	items := strings.Split(text, ";")
	for len(items) < n {
		items = append(items, "")
	}
	return items[:n]
}

// operands reads the descriptors of the row's inputs ("In") or outputs ("Out").
func (r *Row) operands(side string) ([]tensor.Desc, error) {
	n, err := strconv.Atoi(r.Field(side + "Num"))
	if err != nil || n < 0 || n > 256 {
		return nil, fmt.Errorf("%sNum %q is no count", side, r.Field(side+"Num"))
	}
	types, formats, shapes := list(r.Field(side+"DType"), n), list(r.Field(side+"Format"), n), list(r.Field(side+"Shape"), n)
	descs := make([]tensor.Desc, n)
	for i := range descs {
		if descs[i], err = parseDesc(types[i], formats[i], shapes[i]); err != nil {
			return nil, fmt.Errorf("%s tensor %d: %w", side, i, err)
		}
	}
	return descs, nil
}

// parseDesc reads a descriptor. The harness that rows were written for passes a
// tensor without elements with rank 0, and NCHW as ND.
func parseDesc(dtype, format, shape string) (tensor.Desc, error) {
	var d tensor.Desc
	var err error
	if d.DType, err = tensor.ParseDType(dtype); err != nil {
		return d, err
	}
	if d.Format, err = tensor.ParseFormat(format); err != nil {
		return d, err
	}
	if d.Format == tensor.NCHW {
		d.Format = tensor.ND
	}
	var dims []int64
	for f := range strings.SplitSeq(shape, ",") {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return d, fmt.Errorf("shape %q: %w", shape, err)
		}
		dims = append(dims, v)
	}
	d.Shape = tensor.ShapeOf(dims...)
	if slices.Contains(dims, 0) {
		d.Shape = tensor.Shape{}
	}
	return d, nil
}

// fill is how an input's data are made.
type fill struct {
	kind      string
	low, high float64
}

// fills reads DataGenType and DataGenRange.
func (r *Row) fills(n int) ([]fill, error) {
	kinds, ranges := list(r.Field("DataGenType"), n), list(r.Field("DataGenRange"), n)
	out := make([]fill, n)
	for i := range out {
		out[i] = fill{kind: kinds[i], low: -5, high: 5}
		if r.Field("DataGenType") == "" {
			out[i].kind = fillCustom
		}
		if ranges[i] == "" {
			continue
		}
		low, high, ok := strings.Cut(ranges[i], ",")
		var errLow, errHigh error
		out[i].low, errLow = strconv.ParseFloat(low, 64)
		out[i].high, errHigh = strconv.ParseFloat(high, 64)
		if !ok || errLow != nil || errHigh != nil {
			return nil, fmt.Errorf("data range %q of input %d", ranges[i], i)
		}
	}
	return out, nil
}

// Kinds of data.
const (
	fillZero   = "zero"
	fillOne    = "one"
	fillRandom = "random"
	fillCustom = "customize"
)
