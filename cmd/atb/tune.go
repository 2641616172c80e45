package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"goatb/bench/roofline"
	"goatb/bench/tune"
)

// tuneCmd compares tilings with a search.
type tuneCmd struct {
	Threads []int         `help:"Numbers of threads to measure with. Repeats or takes commas." default:"1,2"`
	Time    time.Duration `help:"Time for each way to run a case." default:"20ms"`
	Case    string        `help:"Only cases whose name, shape and data type, as printed with spaces between, contain this." placeholder:"SUBSTRING"`
	Least   float64       `help:"Fail where the best way takes less than this part of the choice's time; 0 never does." default:"0"`
	JSON    bool          `help:"Print one JSON object." name:"json"`
}

// tuneReport is what tune prints as JSON.
type tuneReport struct {
	Schema  int       `json:"schema"`
	Command string    `json:"command"`
	Machine string    `json:"machine"`
	Rows    []tuneRow `json:"rows"`
}

// tuneRow is one case. Ratio is the time of the best way divided by that of the
// choice; told says what tilings were told for it.
type tuneRow struct {
	Name    string  `json:"name"`
	Shape   string  `json:"shape"`
	DType   string  `json:"dtype"`
	Threads int     `json:"threads"`
	Chosen  string  `json:"chosen"`
	TimeNS  int64   `json:"time_ns"`
	GFlops  float64 `json:"gflops"`
	Ways    int     `json:"ways"`
	Best    string  `json:"best"`
	Told    string  `json:"told"`
	BestNS  int64   `json:"best_ns"`
	Ratio   float64 `json:"ratio"`
}

// Run searches and prints.
func (r *tuneCmd) Run(ctx context.Context, out output) error {
	if err := wantMeasurable(r.Threads, r.Time); err != nil {
		return err
	}
	if !(r.Least >= 0 && r.Least <= 1) {
		return fmt.Errorf("--least: want 0 to 1, got %v", r.Least)
	}
	cases := slices.DeleteFunc(tune.Cases(), func(c roofline.Case) bool {
		return !strings.Contains(c.Name+" "+c.Shape+" "+c.DType, r.Case)
	})
	if len(cases) == 0 {
		return fmt.Errorf("--case: no case has %q in its name, shape and type", r.Case)
	}
	rep := tuneReport{Schema: 1, Command: "tune", Machine: roofline.Machine()}
	for _, n := range r.Threads {
		for i := range cases {
			fmt.Fprintf(out.stderr, "\r%d threads: %d of %d cases", n, i+1, len(cases))
			row, err := tune.Measure(ctx, &cases[i], n, r.Time)
			if err != nil {
				return err
			}
			rep.add(&row)
		}
		fmt.Fprintln(out.stderr)
	}
	if err := rep.write(out.stdout, r.JSON); err != nil {
		return err
	}
	return rep.judge(out.stderr, r.Least)
}

func (r *tuneReport) add(row *tune.Row) {
	r.Rows = append(r.Rows, tuneRow{
		Name: row.Name, Shape: row.Shape, DType: row.DType, Threads: row.Threads, Chosen: row.Chosen, TimeNS: row.Time.Nanoseconds(),
		GFlops: row.GFlops, Ways: row.Ways, Best: row.Best, Told: row.Told, BestNS: row.BestTime.Nanoseconds(), Ratio: row.Ratio,
	})
}

func (r *tuneReport) write(w io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(w, r)
	}
	fmt.Fprintln(w, r.Machine)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nname\tshape\tdtype\tthreads\ttime\tGFLOP/s\tways\tratio\tchosen\tbest\ttold")
	for i := range r.Rows {
		k := &r.Rows[i]
		best, told := "the choice", "-"
		if k.Told != "" {
			best, told = fmt.Sprintf("%v: %s", time.Duration(k.BestNS).Round(100*time.Nanosecond), k.Best), k.Told
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%v\t%.1f\t%d\t%.2f\t%s\t%s\t%s\n", k.Name, k.Shape, k.DType, k.Threads,
			time.Duration(k.TimeNS).Round(100*time.Nanosecond), k.GFlops, k.Ways, k.Ratio, k.Chosen, best, told)
	}
	return t.Flush()
}

// judge fails where a ratio is below what was asked for.
func (r *tuneReport) judge(w io.Writer, least float64) error {
	below := 0
	for i := range r.Rows {
		if r.Rows[i].Ratio < least {
			below++
		}
	}
	if below == 0 {
		return nil
	}
	fmt.Fprintf(w, "%d of %d rows have a ratio below %v\n", below, len(r.Rows), least)
	return errFailed
}
