package main

import (
	"fmt"

	"goatb/bench/compare"
	htmlpage "goatb/bench/report"
	"goatb/device/trace"
)

// policiesFiles are the files that a comparison writes, nil for those not asked
// for.
type policiesFiles struct{ trace, page *outFile }

// create makes the files before anything is measured.
func (p *policiesCmd) create() (f policiesFiles, err error) {
	if p.Trace != "" && p.Trace == p.HTML {
		return f, fmt.Errorf("--trace and --html: want two files, got %s for both", p.Trace)
	}
	if f.trace, err = createOut("--trace", p.Trace, p.Model, p.Profile); err != nil {
		return f, err
	}
	if f.page, err = createOut("--html", p.HTML, p.Model, p.Profile); err != nil {
		return policiesFiles{}, f.end(err)
	}
	return f, nil
}

// write fills the files and puts them in their places.
func (f policiesFiles) write(r *compare.Result) error {
	if f.trace != nil {
		if err := f.trace.end(trace.Write(f.trace, r.Recorders()...)); err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
	}
	if f.page != nil {
		if err := f.page.end(htmlpage.Write(f.page, r)); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	return nil
}

// end closes what is still open. It returns the command's error and its own.
func (f policiesFiles) end(failed error) error { return f.page.end(f.trace.end(failed)) }

// dropped counts what timelines had no room for.
func dropped(r *compare.Result) (n int64) {
	for _, t := range r.Timelines {
		n += t.Recorder.Dropped()
	}
	return n
}
