package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"goatb/bench/roofline"
)

// rooflineCmd measures the machine and the operations on it.
type rooflineCmd struct {
	Threads []int         `help:"Numbers of threads to measure with. Repeats or takes commas." default:"1,2"`
	Time    time.Duration `help:"Time for each case." default:"200ms"`
	Case    string        `help:"Only cases whose name contains this." placeholder:"SUBSTRING"`
	Model   string        `help:"Measure decoding and prefill of a random model of this shape instead: a name or a config.json." placeholder:"NAME"`
	Weights []string      `help:"Formats of the model's weights: f32, f16, bf16, int8, int4. Repeats or takes commas." default:"bf16,int8,int4"`
	Dtype   string        `help:"Element type of activations and caches beside int8 and int4 weights." enum:"f32,f16,bf16" default:"bf16"`
	Prompt  int           `help:"Tokens of the model's prompt." default:"512"`
	JSON    bool          `help:"Print one JSON object." name:"json"`
}

// rooflineReport is what roofline prints as JSON. Rates are in GFLOP/s (Gop/s
// for integers) and GB/s.
type rooflineReport struct {
	Schema  int                    `json:"schema"`
	Command string                 `json:"command"`
	Machine string                 `json:"machine"`
	Peaks   map[string]limitReport `json:"peaks"`
	Kernels []kernelReport         `json:"kernels"`
	Models  []modelReport          `json:"models,omitempty"`
}

// limitReport holds the limits of a number of threads.
type limitReport struct {
	FMA  map[string]float64 `json:"fma"`
	Read float64            `json:"read_gbytes_per_s"`
}

// kernelReport is one case. Fraction is the time that the limit allows divided
// by the time taken.
type kernelReport struct {
	Name     string  `json:"name"`
	Shape    string  `json:"shape"`
	DType    string  `json:"dtype"`
	Threads  int     `json:"threads"`
	TimeNS   int64   `json:"time_ns"`
	GFlops   float64 `json:"gflops"`
	GBytes   float64 `json:"gbytes_per_s"`
	Fraction float64 `json:"fraction"`
	Limit    string  `json:"limit"`
}

// refuseIdle refuses flags of a model beside cases, and the other way round.
func (r *rooflineCmd) refuseIdle(given givenFlags) error {
	if r.Model != "" {
		return given.refuse("it is for the operations' own shapes, not for --model", "case")
	}
	return given.refuse("it is for --model", "weights", "dtype", "prompt")
}

// wantMeasurable refuses numbers of threads that the machine has not, and no time.
func wantMeasurable(threads []int, each time.Duration) error {
	for _, n := range threads {
		if n < 1 || n > runtime.NumCPU() {
			return fmt.Errorf("--threads: want 1 to %d processors, got %d", runtime.NumCPU(), n)
		}
	}
	if each <= 0 {
		return fmt.Errorf("--time: want more than 0, got %v", each)
	}
	return nil
}

// Run measures and prints.
func (r *rooflineCmd) Run(ctx context.Context, out output) error {
	if err := wantMeasurable(r.Threads, r.Time); err != nil {
		return err
	}
	if r.Model != "" {
		return r.models(ctx, out)
	}
	cases := slices.DeleteFunc(roofline.Cases(), func(c roofline.Case) bool { return !strings.Contains(c.Name, r.Case) })
	if len(cases) == 0 {
		return fmt.Errorf("--case: no case has %q in its name", r.Case)
	}
	rep := rooflineReport{Schema: 1, Command: "roofline", Machine: roofline.Machine(), Peaks: map[string]limitReport{}}
	for _, n := range r.Threads {
		if err := rep.measure(ctx, out.stderr, n, cases, r.Time); err != nil {
			return err
		}
	}
	if r.JSON {
		return writeJSON(out.stdout, &rep)
	}
	return rep.print(out.stdout)
}

// measure adds the limits of n threads and what the cases reach with them.
func (r *rooflineReport) measure(ctx context.Context, progress io.Writer, n int, cases []roofline.Case, each time.Duration) error {
	l, err := roofline.MeasureLimits(n, roofline.BeyondCaches)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }() // frees: the results stand
	r.Peaks[fmt.Sprint(n)] = limitReport{FMA: l.Peaks, Read: l.Read}
	for i := range cases {
		fmt.Fprintf(progress, "\r%d threads: %d of %d cases", n, i+1, len(cases))
		row, err := roofline.Measure(ctx, &cases[i], l, each)
		if err != nil {
			return err
		}
		r.Kernels = append(r.Kernels, kernelReport{
			row.Name, row.Shape, row.DType, row.Threads, row.Time.Nanoseconds(), row.GFlops, row.GBytes, row.Fraction, row.Limit,
		})
	}
	fmt.Fprintln(progress)
	return nil
}

func (r *rooflineReport) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, r.Machine)
	for _, n := range slices.Sorted(maps.Keys(r.Peaks)) {
		p := r.Peaks[n]
		fmt.Fprintf(t, "threads %s\tread %.1f GB/s", n, p.Read)
		for _, name := range slices.Sorted(maps.Keys(p.FMA)) {
			fmt.Fprintf(t, "\t%s %.0f GFLOP/s", name, p.FMA[name])
		}
		fmt.Fprintln(t)
	}
	fmt.Fprintln(t, "\nname\tshape\tdtype\tthreads\ttime\tGFLOP/s\tGB/s\tfraction\tlimit")
	for i := range r.Kernels {
		k := &r.Kernels[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%v\t%.1f\t%.1f\t%.2f\t%s\n", k.Name, k.Shape, k.DType, k.Threads,
			time.Duration(k.TimeNS).Round(100*time.Nanosecond), k.GFlops, k.GBytes, k.Fraction, k.Limit)
	}
	return t.Flush()
}
