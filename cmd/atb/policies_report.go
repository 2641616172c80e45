package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"goatb/bench/compare"
	"goatb/device/sim/profile"
)

// printComparison prints a comparison for people.
func printComparison(w io.Writer, r *compare.Result) error {
	what := fmt.Sprintf("context %d", r.Context)
	if r.Prompt > 1 {
		what = fmt.Sprintf("prompts of %d tokens", r.Prompt)
	}
	fmt.Fprintf(w, "%s (%s), %s, batch %d, %s, on %s; a step in microseconds, the median of %d\n\n", r.Model, parallel(r), r.DType, r.Batch, what, r.Device, r.Steps)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tstep\tratio\thost busy\tdevice busy\tidle: tiling\tcopy\tlaunch\tevent\tring\tother\t")
	for i := range r.Policies {
		p := &r.Policies[i]
		fmt.Fprintf(t, "%s\t%s\t%.3f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", p.Policy, us(p.StepNs), p.Ratio, us(p.HostBusyNs), us(p.DeviceBusyNs),
			us(p.Idle.Tiling), us(p.Idle.Copy), us(p.Idle.Launch), us(p.Idle.Event), us(p.Idle.Ring), us(p.Idle.Other))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\ncounts of all steps\n\n")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "policy\tkernels\thost tilings\tdevice tilings\tlocal hits\tglobal hits\tmisses\tmoved KiB\tring stalls\tdeepest queue\t")
	for i := range r.Policies {
		p := &r.Policies[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f\t%d\t%d\t\n", p.Policy, p.Kernels, p.HostTilings, p.DeviceTilings,
			p.Cache.LocalHits, p.Cache.GlobalHits, p.Cache.Misses, float64(p.BytesMoved)/1024, p.RingStalls, p.QueueDepthMax)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printFallbacks(w, r)
	return printSensitivity(w, r)
}

// printFallbacks says what a policy was to take off the host and did not.
func printFallbacks(w io.Writer, r *compare.Result) {
	for i := range r.Policies {
		p := &r.Policies[i]
		for _, f := range p.Fallbacks {
			what := "launched by the host"
			if f.Node != "" {
				what = f.Node + " tiled by the host"
			}
			fmt.Fprintf(w, "\nnote: %s: %s: %s\n", p.Policy, what, f.Reason)
		}
	}
}

func parallel(r *compare.Result) string {
	if r.Parallel == 1 {
		return "whole"
	}
	return fmt.Sprintf("one of %d devices", r.Parallel)
}

// us is a time in microseconds.
func us(ns int64) string { return fmt.Sprintf("%.1f", float64(ns)/1e3) }

// printSensitivity prints how steps change with the estimated costs, and which
// conclusions do not hang on them.
func printSensitivity(w io.Writer, r *compare.Result) error {
	if len(r.Sensitivity) == 0 {
		if r.Profile != "cpu" {
			fmt.Fprintf(w, "\nprofile %s: public figures and estimates, not a measurement of your device; --sensitivity shows what hangs on the estimates\n", r.Profile)
		}
		return nil
	}
	fmt.Fprintf(w, "\nsteps with an estimated cost halved or doubled, in percent of the steps above; left out where all stay within 1 percent\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "cost\tfactor\t")
	for i := range r.Policies {
		fmt.Fprintf(t, "%s\t", r.Policies[i].Policy)
	}
	fmt.Fprintln(t)
	for _, s := range r.Sensitivity {
		cells, changed := "", false
		for i := range r.Policies {
			p := &r.Policies[i]
			percent := 100 * float64(s.StepNs[p.Policy]-p.StepNs) / float64(p.StepNs)
			changed = changed || percent > 1 || percent < -1
			cells += fmt.Sprintf("%+.1f\t", percent)
		}
		if changed {
			fmt.Fprintf(t, "%s\t%g\t%s\n", s.Param, s.Factor, cells)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, c := range r.Conclusions {
		verdict := "whatever estimate is halved or doubled"
		if !c.Solid {
			verdict = "not with " + strings.Join(c.Fails, ", ")
		}
		if _, err := fmt.Fprintf(w, "%s is faster than %s, %.3f times: %s\n", c.Faster, c.Slower, c.Ratio, verdict); err != nil {
			return err
		}
	}
	return nil
}

// listCosts prints a profile with its sources.
func (p *policiesCmd) listCosts(w io.Writer, c *profile.Profile) error {
	fmt.Fprintf(w, "%s: %s. %s\n\n", c.Name, c.Chip, c.About)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tVALUE\tUNIT\tBASIS\tMEANING\tSOURCE")
	names := profile.Names()
	for i, x := range c.Params() {
		fmt.Fprintf(t, "%s\t%g\t%s\t%s\t%s\t%s\n", x.Name, x.Value, x.Unit, x.Basis, names[i].Text, x.Source)
	}
	return t.Flush()
}
