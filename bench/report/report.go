package report

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"goatb/bench/compare"
	"goatb/device/trace"
)

// Parts of the page.
var (
	//go:embed page/page.html
	pageText string
	//go:embed page/page.css
	style string
	//go:embed page/trace.js
	traceScript string
	//go:embed page/view.js
	viewScript string
	//go:embed page/input.js
	inputScript string
)

// timelineEntries bounds the entries of the timeline in a page: browsers stay
// quick with as many. Steps beyond are left out.
const timelineEntries = 150_000

// Write writes the page of a comparison. There is a timeline where the comparison
// has kept one, of the first steps when there are many. Errors: those of w.
func Write(w io.Writer, r *compare.Result) error {
	p, err := newPage(r)
	if err != nil {
		return err
	}
	t, err := template.New("page").Funcs(template.FuncMap{"us": us, "count": count, "percent": percent, "sum": (*compare.Idle).Sum}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

// page is what the template reads.
type page struct {
	*compare.Result
	Style  template.CSS
	Script template.JS
	Load   string
	Bars   []bar
	Idle   []bar
	Plan   template.HTML
	// Fastest is the shortest step.
	Fastest int64
	// Trace is the timeline, "" for none, TraceSteps the steps that it holds and
	// Dropped the entries for which recorders had no room.
	Trace      template.HTML
	TraceSteps int
	Dropped    int64
	// Causes maps categories of host spans.
	Causes  map[string]string
	Changes []change
}

func newPage(r *compare.Result) (*page, error) {
	p := &page{
		Result: r, Style: template.CSS(style), Script: template.JS(traceScript + viewScript + inputScript),
		Load: load(r), Fastest: fastest(r), Bars: stepBars(r), Idle: idleBars(r), Causes: compare.HostCauses(), Changes: changes(r),
	}
	var err error
	if p.Plan, err = drawPlan(&r.Memory); err != nil {
		return nil, err
	}
	if len(r.Timelines) > 0 {
		recorders, n := r.FirstSteps(timelineEntries)
		p.TraceSteps = n
		for _, t := range r.Timelines {
			p.Dropped += t.Recorder.Dropped()
		}
		p.Trace, err = pack(recorders)
	}
	return p, err
}

// pack writes recorders as the page holds them.
func pack(recorders []*trace.Recorder) (template.HTML, error) {
	var out bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &out)
	zip := gzip.NewWriter(text)
	if err := trace.Write(zip, recorders...); err != nil {
		return "", err
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	if err := text.Close(); err != nil {
		return "", err
	}
	return template.HTML(out.String()), nil
}

// load says in words what a step computes.
func load(r *compare.Result) string {
	if r.Prompt > 1 {
		return fmt.Sprintf("Prompts of %s tokens", count(int64(r.Prompt)))
	}
	return fmt.Sprintf("Decoding at context %s", count(int64(r.Context)))
}

func fastest(r *compare.Result) (ns int64) {
	for i := range r.Policies {
		if n := r.Policies[i].StepNs; i == 0 || n < ns {
			ns = n
		}
	}
	return ns
}
