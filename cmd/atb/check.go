package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"goatb/atb"
	"goatb/internal/conformance"
)

// checkCmd runs ATB's rows and golden cases.
type checkCmd struct {
	place
	Paths    []string `arg:"" optional:"" help:"Suites (.csv), golden cases (.safetensors) or folders with them."`
	Checks   string   `help:"Profile of checks: native or 910b." enum:"native,910b" default:"910b"`
	Op       []string `help:"Keep the named operations." placeholder:"NAME"`
	Case     string   `help:"Keep cases whose suite, number or name contains this." placeholder:"SUBSTRING"`
	MaxBytes int64    `help:"Run rows without a golden case against a float64 reference up to this size of all operands." default:"16777216"`
	Stale    string   `help:"Table of rows to leave out: suite, CaseNum, reason, separated by tabs." type:"existingfile" placeholder:"FILE"`
	List     string   `help:"List the cases of an outcome: failed, skipped or stage_only." placeholder:"OUTCOME"`
	Matrix   bool     `help:"List the combinations that attention operations accept, and whether a value test covers each."`
	Bench    bool     `help:"List every case that ran with its time."`
	JSON     bool     `help:"Print one JSON object." name:"json"`
}

// checkReport is what check prints as JSON.
type checkReport struct {
	Schema  int    `json:"schema"`
	Command string `json:"command"`
	conformance.Results
	Matrix []conformance.Combination `json:"matrix,omitempty"`
}

// Run checks the paths and fails when a case failed.
func (k *checkCmd) Run(out output) error {
	if err := k.validate(); err != nil {
		return err
	}
	r := checkReport{Schema: 1, Command: "check", Results: conformance.Results{Ops: []conformance.OpTotals{}, Cases: []conformance.CaseResult{}}}
	if k.Matrix {
		var err error
		r.Matrix, err = conformance.FilterMatrix(conformance.Matrix(), k.Op, k.Case)
		if err != nil && len(k.Paths) == 0 {
			return k.flag(err)
		}
	}
	if len(k.Paths) > 0 {
		res, err := k.check(out.stderr)
		if err != nil {
			return k.flag(err)
		}
		r.Results = *res
	}
	if err := k.print(out.stdout, &r); err != nil {
		return err
	}
	if r.Totals.Failed > 0 {
		return fmt.Errorf("%d of %d cases: %w", r.Totals.Failed, len(r.Cases), errFailed)
	}
	return nil
}

// listed are the outcomes that --list takes.
var listed = []conformance.Status{conformance.Failed, conformance.Skipped, conformance.StageOnly}

// validate checks the flags alone.
func (k *checkCmd) validate() error {
	switch {
	case len(k.Paths) == 0 && !k.Matrix:
		return fmt.Errorf("want at least one path, or --matrix")
	case len(k.Paths) == 0 && (k.Stale != "" || k.List != "" || k.Bench):
		return fmt.Errorf("--stale, --list and --bench want paths: --matrix alone runs no cases")
	case k.List != "" && !slices.Contains(listed, conformance.Status(k.List)):
		return fmt.Errorf("--list: want failed, skipped or stage_only, got %q", k.List)
	}
	if err := atLeast(limit{"max-bytes", k.MaxBytes, 1}); err != nil {
		return err
	}
	return k.place.validate()
}

// flag names the flag that chose nothing.
func (k *checkCmd) flag(err error) error {
	if e, ok := errors.AsType[*conformance.NoMatchError](err); ok {
		return fmt.Errorf("--%w", e)
	}
	return err
}

// check runs the cases; failures are logged as they come.
func (k *checkCmd) check(log io.Writer) (res *conformance.Results, err error) {
	opts, err := k.options()
	if err != nil {
		return nil, err
	}
	o := conformance.Options{MaxBytes: k.MaxBytes, Ops: k.Op, Case: k.Case}
	if k.Stale != "" {
		if o.Stale, err = conformance.ReadStale(k.Stale); err != nil {
			return nil, err
		}
	}
	dev, err := k.open(nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := dev.Close(); err == nil {
			err = e
		}
	}()
	c, err := atb.NewContext(dev, append(opts, atb.WithChecks(k.Checks))...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := c.Close(); err == nil {
			err = e
		}
	}()
	if o.Engine, err = conformance.NewRuntime(c); err != nil {
		return nil, err
	}
	o.Each = func(r conformance.CaseResult) {
		if r.Status == conformance.Failed {
			fmt.Fprintf(log, "check: %s\n", caseLine(&r))
		}
	}
	return conformance.Check(k.Paths, o)
}

func caseLine(r *conformance.CaseResult) string {
	if r.Op == "" {
		return fmt.Sprintf("%s: %s: %s", r.Path, r.Status, r.Reason)
	}
	return fmt.Sprintf("%s row %d case %s %s: %s: want %s, got %s: %s", r.Path, r.Row, r.Case, r.Op, r.Status, r.Expected, r.Got, r.Reason)
}

func (k *checkCmd) print(w io.Writer, r *checkReport) error {
	if k.JSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, m := range r.Matrix {
		covered := "no value test"
		if m.Covered {
			covered = "value test " + m.Test
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.Op, m.Name, covered)
	}
	if len(k.Paths) == 0 {
		return nil
	}
	for i := range r.Cases {
		if c := &r.Cases[i]; k.List != "" && string(c.Status) == k.List {
			fmt.Fprintln(w, caseLine(c))
		}
	}
	if k.Bench {
		printTimes(w, r.Cases)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "operation\tpassed\tfailed\tskipped\tstage only")
	for _, o := range r.Ops {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\n", o.Op, o.Passed, o.Failed, o.Skipped, o.StageOnly)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n := r.Totals.StageOnly; n > 0 {
		fmt.Fprintf(w, "%d too large to execute: stages up to setup passed\n", n)
	}
	_, err := fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", r.Totals.Passed, r.Totals.Failed, r.Totals.Skipped)
	return err
}

// printTimes lists the cases that ran, the slowest first.
func printTimes(w io.Writer, cases []conformance.CaseResult) {
	ran := slices.DeleteFunc(slices.Clone(cases), func(c conformance.CaseResult) bool { return c.Status == conformance.Skipped })
	slices.SortStableFunc(ran, func(a, b conformance.CaseResult) int { return int(min(max(b.TimeNS-a.TimeNS, -1), 1)) })
	for i := range ran {
		c := &ran[i]
		fmt.Fprintf(w, "%v\t%s row %d %s %s\n", time.Duration(c.TimeNS), c.Path, c.Row, strings.TrimSuffix(c.Op, "Operation"), c.Status)
	}
}
