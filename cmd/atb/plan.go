package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"goatb/mempool"
)

// planCmd plans memory.
type planCmd struct {
	Files    []string      `arg:"" help:"CSV files: id,lower,upper,size[,...]." name:"file"`
	Solver   int           `help:"Solver, 0 to 4." default:"4" placeholder:"0..4"`
	Capacity int64         `help:"Largest arena in bytes that is allowed; 0 allows any." default:"0"`
	Align    int64         `help:"Alignment of offsets in bytes, a power of two." default:"1"`
	Nodes    int64         `help:"Most nodes of an exact search; 0 is no bound." default:"0"`
	Deadline time.Duration `help:"Longest time of an exact search; 0 is no bound." default:"0s"`
	Threads  int           `help:"Most threads of an exact search; 0 is no bound." default:"0"`
	Offsets  bool          `help:"Print the offset of every buffer."`
	SVG      string        `help:"Draw the plan of a single file." placeholder:"FILE" name:"svg"`
	JSON     bool          `help:"Print one JSON object." name:"json"`
}

// planReport is what plan prints as JSON.
type planReport struct {
	Schema  int       `json:"schema"`
	Command string    `json:"command"`
	Plans   []onePlan `json:"plans"`
}

// onePlan is the plan of one file. Sizes are bytes.
type onePlan struct {
	File       string       `json:"file"`
	N          int          `json:"n"`
	Arena      int64        `json:"arena"`
	LowerBound int64        `json:"lower_bound"`
	Ratio      float64      `json:"ratio"`
	Optimal    bool         `json:"optimal"`
	Method     string       `json:"method"`
	Nodes      int64        `json:"nodes"`
	TimeNs     int64        `json:"time_ns"`
	Valid      bool         `json:"valid"`
	Peak       peakReport   `json:"peak"`
	Offsets    []offsetItem `json:"offsets,omitempty"`
}

type peakReport struct {
	At  int64    `json:"at"`
	IDs []string `json:"ids"`
}

type offsetItem struct {
	ID     string `json:"id"`
	Offset int64  `json:"offset"`
}

// Run plans every file.
func (p *planCmd) Run(ctx context.Context, out output) error {
	if err := p.validate(); err != nil {
		return err
	}
	if p.Nodes > 0 || p.Deadline > 0 || p.Threads > 0 {
		fmt.Fprintln(out.stderr, "plan: --nodes, --deadline and --threads bound an exact search; the solvers of this version do not search")
	}
	progress := newProgress(out.stderr)
	r := planReport{Schema: 1, Command: "plan"}
	missed, invalid := 0, 0
	for i, file := range p.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if progress.due() {
			progress.printf("plan: %d of %d files", i, len(p.Files))
		}
		one, err := p.plan(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if p.Capacity > 0 && one.Arena > p.Capacity {
			missed++
		}
		if !one.Valid {
			invalid++
		}
		r.Plans = append(r.Plans, *one)
	}
	if err := p.print(out.stdout, &r); err != nil {
		return err
	}
	switch {
	case invalid > 0:
		return fmt.Errorf("%d of %d plans are invalid: %w", invalid, len(r.Plans), errFailed)
	case missed > 0:
		return fmt.Errorf("%d of %d plans exceed the capacity of %d bytes: %w", missed, len(r.Plans), p.Capacity, errFailed)
	}
	return nil
}

func (p *planCmd) validate() error {
	if err := checkSolver(&p.Solver); err != nil {
		return err
	}
	for _, f := range [...]struct {
		name string
		v    int64
	}{{"capacity", p.Capacity}, {"nodes", p.Nodes}, {"deadline", int64(p.Deadline)}, {"threads", int64(p.Threads)}} {
		if f.v < 0 {
			return fmt.Errorf("--%s: want at least 0, got %d", f.name, f.v)
		}
	}
	if p.Align < 1 {
		return fmt.Errorf("--align: want a power of two, got %d", p.Align)
	}
	if p.SVG != "" && len(p.Files) != 1 {
		return fmt.Errorf("--svg draws one file, got %d", len(p.Files))
	}
	return nil
}

func (p *planCmd) plan(file string) (*onePlan, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := mempool.ReadCSV(f)
	if err != nil {
		return nil, err
	}
	var planner mempool.Planner
	start := time.Now()
	res, err := planner.Plan(t.Items, mempool.Options{Solver: mempool.SolverType(p.Solver), Align: p.Align})
	if err != nil {
		return nil, err
	}
	one := &onePlan{File: file, N: len(t.Items), Arena: res.Arena, LowerBound: res.LowerBound, Ratio: 1, Optimal: res.Optimal,
		Method: res.Method, Nodes: res.Nodes, TimeNs: time.Since(start).Nanoseconds(), Valid: mempool.Validate(t.Items, res.Offsets) == nil}
	if res.LowerBound > 0 {
		one.Ratio = float64(res.Arena) / float64(res.LowerBound)
	}
	one.Peak = peakReport{At: res.PeakAt, IDs: []string{}}
	for _, i := range mempool.Live(t.Items, res.PeakAt) {
		one.Peak.IDs = append(one.Peak.IDs, t.IDs[i])
	}
	if p.Offsets {
		for i, id := range t.IDs {
			one.Offsets = append(one.Offsets, offsetItem{id, res.Offsets[i]})
		}
	}
	if p.SVG == "" {
		return one, nil
	}
	w, err := os.Create(p.SVG)
	if err != nil {
		return nil, err
	}
	return one, errors.Join(mempool.WriteSVG(w, t, res), w.Close())
}

func (p *planCmd) print(w io.Writer, r *planReport) error {
	if p.JSON {
		return writeJSON(w, r)
	}
	for i := range r.Plans {
		x := &r.Plans[i]
		fmt.Fprintf(w, "%s: %d buffers, arena %d, lower bound %d, ratio %.4f, optimal %v, by %s in %v; peak at %d with %d live\n",
			x.File, x.N, x.Arena, x.LowerBound, x.Ratio, x.Optimal, x.Method, time.Duration(x.TimeNs), x.Peak.At, len(x.Peak.IDs))
		for _, o := range x.Offsets {
			fmt.Fprintf(w, "  %s %d\n", o.ID, o.Offset)
		}
	}
	return nil
}
