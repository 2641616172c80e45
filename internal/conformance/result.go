package conformance

import (
	"cmp"
	"slices"
)

// Status is the outcome of a case.
type Status string

// Outcomes.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	Skipped Status = "skipped"
	// StageOnly is a row that should succeed and is too large to be executed:
	// all stages up to Setup passed.
	StageOnly Status = "stage_only"
)

// Totals counts cases by outcome.
type Totals struct {
	Passed    int `json:"passed"`
	Failed    int `json:"failed"`
	Skipped   int `json:"skipped"`
	StageOnly int `json:"stage_only"`
}

func (t *Totals) add(s Status) {
	switch s {
	case Passed:
		t.Passed++
	case Failed:
		t.Failed++
	case Skipped:
		t.Skipped++
	case StageOnly:
		t.StageOnly++
	}
}

// OpTotals counts the cases of an operation.
type OpTotals struct {
	Op string `json:"op"`
	Totals
}

// CaseResult is the outcome of one row or golden case.
type CaseResult struct {
	// Path is the file, Row the index of the data row in the suite, Case the
	// row's number, Op the operation's type.
	Path string `json:"path"`
	Row  int    `json:"row"`
	Case string `json:"case"`
	Op   string `json:"op"`

	Status Status `json:"status"`
	// Stage is the last stage that ran: C, I, S, E or compare.
	Stage string `json:"stage"`
	// Expected is what the row wants, Got what happened, both in the row's
	// spelling, such as "I:ERROR_INVALID_PARAM".
	Expected string `json:"expected"`
	Got      string `json:"got"`
	// Reason explains a failure or a skip.
	Reason string `json:"reason"`
	// MaxErr is the largest |actual-golden|/max(1,|golden|) of the output that
	// used most of its Tolerance.
	MaxErr    float64 `json:"max_err"`
	Tolerance float64 `json:"tolerance"`
	// TimeNS is the time of the whole case.
	TimeNS int64 `json:"time_ns"`
}

// Results is the outcome of a run.
type Results struct {
	Totals Totals       `json:"totals"`
	Ops    []OpTotals   `json:"ops"`
	Cases  []CaseResult `json:"cases"`
}

// add counts a case.
func (r *Results) add(c CaseResult) {
	r.Totals.add(c.Status)
	i, ok := slices.BinarySearchFunc(r.Ops, c.Op, func(o OpTotals, op string) int { return cmp.Compare(o.Op, op) })
	if !ok {
		r.Ops = slices.Insert(r.Ops, i, OpTotals{Op: c.Op})
	}
	r.Ops[i].add(c.Status)
	r.Cases = append(r.Cases, c)
}
