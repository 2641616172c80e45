package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"goatb/atb"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
)

// compileReport is what compile prints as JSON.
type compileReport struct {
	Schema  int              `json:"schema"`
	Command string           `json:"command"`
	File    string           `json:"file"`
	Bytes   int              `json:"bytes"`
	Soc     string           `json:"soc"`
	Form    string           `json:"form"`
	Offline bool             `json:"offline"`
	Graphs  []compiledReport `json:"graphs"`
}

// compiledReport is a compiled graph. Sunk kernels are tiled on the device, those
// in Host on the host at every launch, all others once and for all.
type compiledReport struct {
	Name     string      `json:"name"`
	Kernels  int         `json:"kernels"`
	Sunk     int         `json:"sunk"`
	Host     int         `json:"host"`
	Segments int         `json:"segments"`
	Gates    []gateEntry `json:"gates"`
	Tasks    []taskEntry `json:"tasks,omitempty"`

	plan *capture.Plan // for the text, nil without --tasks
}

func reportCompiled(f *atb.Compiled, path string, size int, tasks bool) (*compileReport, error) {
	plans, err := f.Plans()
	if err != nil {
		return nil, err
	}
	r := &compileReport{Schema: 1, Command: "compile", File: path, Bytes: size, Soc: f.Soc.Name, Form: f.Form.String(), Offline: f.Offline, Graphs: []compiledReport{}}
	for _, p := range plans {
		g := compiledReport{Name: p.Settings.Name, Segments: len(p.Segments), Gates: gateEntries(p)}
		for i, m := range p.Marks {
			switch {
			case p.Ops[i].CompileInfo == "":
				continue
			case m.Sunk:
				g.Sunk++
			case m.Unknown || f.Form == sink.V2Form && m.Depends:
				g.Host++
			}
			g.Kernels++
		}
		if tasks {
			g.Tasks, g.plan = taskEntries(p), p
		}
		r.Graphs = append(r.Graphs, g)
	}
	return r, nil
}

// print writes a table, then the task lists that were asked for.
func (r *compileReport) print(w io.Writer) error {
	how := "online"
	if r.Offline {
		how = "offline"
	}
	fmt.Fprintf(w, "%s: %d bytes, %s for SoC %s in form %s\n\n", r.File, r.Bytes, how, r.Soc, r.Form)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "graph\tkernels\ttiled on device\ttiled on host\tsegments\t")
	for _, g := range r.Graphs {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", g.Name, g.Kernels, g.Sunk, g.Host, g.Segments)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, g := range r.Graphs {
		for _, e := range g.Gates {
			if !e.Sunk && e.Reason != "" {
				fmt.Fprintf(w, "%s: %s: %s\n", g.Name, e.Operation, e.Reason)
			}
		}
	}
	for _, g := range r.Graphs {
		if g.plan == nil {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", g.Name); err != nil {
			return err
		}
		if err := writeTasks(w, g.plan); err != nil {
			return err
		}
	}
	return nil
}
