package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"goatb/internal/boundedfile"
	"goatb/mempool"
)

// planCmd plans memory.
type planCmd struct {
	Files    []string      `arg:"" help:"CSV files: id,lower,upper,size[,offset,fixed,align,...]." name:"file"`
	Solver   int           `help:"Solver, 0 to 4." default:"4" placeholder:"0..4"`
	Capacity int64         `help:"Arena in bytes that must not be exceeded, and is good enough; 0 asks for the smallest." default:"0"`
	Align    int64         `help:"Alignment of offsets in bytes, a power of two, where a row asks for none." default:"1"`
	Nodes    int64         `help:"Most nodes of the exact search of solver 4; 0 is a bound of some ten seconds, or none with a deadline." default:"0"`
	Deadline time.Duration `help:"Longest time of the exact search of one file; 0 is no bound. Plans may differ from run to run." default:"0s"`
	Threads  int           `help:"Searches of solver 4 at a time; with more than one, plans may differ from run to run." default:"1"`
	Check    bool          `help:"Check the plans that the files hold in their offset columns instead of making new ones."`
	Offsets  bool          `help:"Print every buffer with its offset, as CSV."`
	CSV      string        `help:"Write the plan of a single file as CSV." placeholder:"FILE" name:"csv"`
	SVG      string        `help:"Draw the plan of a single file." placeholder:"FILE" name:"svg"`
	JSON     bool          `help:"Print one JSON object; it has the offsets." name:"json"`
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
	Offsets    []offsetItem `json:"offsets"`

	table   mempool.Table
	offsets []int64
	wrong   error // what makes the plan invalid
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
	if err := atLeast(limit{"capacity", p.Capacity, 0}, limit{"nodes", p.Nodes, 0}); err != nil {
		return err
	}
	switch {
	case p.Deadline < 0:
		return fmt.Errorf("--deadline: want at least 0s, got %v", p.Deadline)
	case p.CSV != "" && filepath.Clean(p.CSV) == filepath.Clean(p.SVG):
		return fmt.Errorf("--csv and --svg want two files, got %s", p.CSV)
	case p.Align < 1:
		return fmt.Errorf("--align: want a power of two, got %d", p.Align)
	case p.Threads < 1 || p.Threads > planThreadsMax:
		return fmt.Errorf("--threads: want 1 to %d, got %d", planThreadsMax, p.Threads)
	case p.SVG != "" && len(p.Files) != 1:
		return fmt.Errorf("--svg draws one file, got %d", len(p.Files))
	case p.CSV != "" && len(p.Files) != 1:
		return fmt.Errorf("--csv writes the plan of one file, got %d", len(p.Files))
	}
	return nil
}

// planThreadsMax bounds --threads, planBytesMax a file of buffers.
const (
	planThreadsMax = 1024
	planBytesMax   = 1 << 30
)

func (p *planCmd) plan(file string) (*onePlan, error) {
	text, err := boundedfile.Read(file, planBytesMax)
	if err != nil {
		return nil, err
	}
	t, err := mempool.ReadCSV(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	start := time.Now()
	res, err := p.result(t)
	if err != nil {
		return nil, err
	}
	wrong := p.wrong(t.Items, res)
	one := &onePlan{File: file, N: len(t.Items), Arena: res.Arena, LowerBound: res.LowerBound, Ratio: 1, Optimal: res.Optimal && wrong == nil,
		Method: res.Method, Nodes: res.Nodes, TimeNs: time.Since(start).Nanoseconds(), Valid: wrong == nil,
		Offsets: []offsetItem{}, table: t, offsets: res.Offsets, wrong: wrong}
	if res.LowerBound > 0 {
		one.Ratio = float64(res.Arena) / float64(res.LowerBound)
	}
	one.Peak = peakReport{At: res.PeakAt, IDs: []string{}}
	for _, i := range mempool.Live(t.Items, res.PeakAt) {
		one.Peak.IDs = append(one.Peak.IDs, t.IDs[i])
	}
	for i, id := range t.IDs {
		one.Offsets = append(one.Offsets, offsetItem{id, res.Offsets[i]})
	}
	return one, p.files(one, res)
}

// result plans a table, or takes the plan that it holds.
func (p *planCmd) result(t mempool.Table) (mempool.Result, error) {
	var planner mempool.Planner
	if !p.Check {
		return planner.Plan(t.Items, p.options(len(t.Items)))
	}
	if t.Offsets == nil && len(t.Items) > 0 {
		return mempool.Result{}, errors.New("--check: want an offset in every row")
	}
	// Any plan tells the bound and the peak: the first does.
	res, err := planner.Plan(t.Items, mempool.Options{Solver: mempool.Optimal, Align: p.Align, Capacity: mempool.MaxArena})
	if err != nil {
		return res, err
	}
	res.Arena, res.Offsets, res.Method, res.Nodes = 0, t.Offsets, "file", 0
	least := int64(mempool.MaxAlign) // sizes count rounded up to it
	for i, it := range t.Items {
		if it.Size > 0 && it.First <= it.Last && t.Offsets[i] <= mempool.MaxArena {
			res.Arena = max(res.Arena, t.Offsets[i]+it.Size)
			least = min(least, cmp.Or(it.Align, p.Align))
		}
	}
	res.Arena = (res.Arena + least - 1) / least * least
	res.Optimal = res.Arena <= res.LowerBound
	return res, nil
}

// wrong checks a plan by itself: nothing overlaps, lies aside or leaves the
// arena.
func (p *planCmd) wrong(items []mempool.Item, res mempool.Result) error {
	aligned := slices.Clone(items)
	for i := range aligned {
		it := &aligned[i]
		if it.Align == 0 {
			it.Align = p.Align
		}
		if it.Size > 0 && it.First <= it.Last && res.Offsets[i] > res.Arena-it.Size {
			return fmt.Errorf("item %d of %d bytes at %d leaves the arena of %d bytes", i, it.Size, res.Offsets[i], res.Arena)
		}
	}
	return mempool.Validate(aligned, res.Offsets)
}

// planWork bounds a search that has no other bound: nodes times buffers, to
// which its time is about proportional.
const planWork = 1 << 30

// options returns how n buffers are planned.
func (p *planCmd) options(n int) mempool.Options {
	o := mempool.Options{Solver: mempool.SolverType(p.Solver), Align: p.Align, Capacity: p.Capacity, Nodes: p.Nodes, Deadline: p.Deadline, Threads: p.Threads}
	if o.Nodes == 0 && o.Deadline == 0 {
		o.Nodes = planWork / int64(max(n, 1))
	}
	return o
}

// files writes the files that are asked for.
func (p *planCmd) files(one *onePlan, res mempool.Result) error {
	for _, f := range [...]struct {
		flag, name string
		write      func(w io.Writer) error
	}{
		{"--csv", p.CSV, func(w io.Writer) error { return mempool.WriteCSV(w, one.table, res.Offsets) }},
		{"--svg", p.SVG, func(w io.Writer) error { return mempool.WriteSVG(w, one.table, res) }},
	} {
		w, err := createOut(f.flag, f.name, one.File)
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		if err := w.end(f.write(w)); err != nil {
			return fmt.Errorf("%s: %w", f.flag, err)
		}
	}
	return nil
}

func (p *planCmd) print(w io.Writer, r *planReport) error {
	if p.JSON {
		return writeJSON(w, r)
	}
	for i := range r.Plans {
		x := &r.Plans[i]
		fmt.Fprintf(w, "%s: %d buffers, arena %d, lower bound %d, ratio %.4f, optimal %v, by %s in %v; %d nodes searched; peak at %d with %d live\n",
			x.File, x.N, x.Arena, x.LowerBound, x.Ratio, x.Optimal, x.Method, time.Duration(x.TimeNs), x.Nodes, x.Peak.At, len(x.Peak.IDs))
		if x.wrong != nil {
			fmt.Fprintf(w, "%s: invalid: %v\n", x.File, x.wrong)
		}
		if !p.Offsets {
			continue
		}
		if err := mempool.WriteCSV(w, x.table, x.offsets); err != nil {
			return err
		}
	}
	return nil
}
