package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// row is one row of a timeline as Chromium or the file has it.
type row struct {
	Process string
	Row     string
	Slices  int
}

// rowsOf counts the slices of the rows of a trace file, by process and row.
func rowsOf(t *testing.T, path string) (rows map[string]row, flows int) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			PID, TID int
			Args     map[string]any
		} `json:"traceEvents"`
	}
	require.NoError(t, json.Unmarshal(b, &file))
	rows, names := map[string]row{}, map[int]string{}
	for _, e := range file.TraceEvents {
		key := fmt.Sprintf("%d/%d", e.PID, e.TID)
		r := rows[key]
		switch e.Ph + e.Name {
		case "Mprocess_name":
			names[e.PID] = e.Args["name"].(string)
		case "Mthread_name":
			r.Row = e.Args["name"].(string)
		}
		switch e.Ph {
		case "X":
			r.Slices++
		case "s":
			flows++
		}
		r.Process = names[e.PID]
		rows[key] = r
	}
	return rows, flows
}

// TestTraceInChromium loads a timeline into the performance panel of Chromium's own
// developer tools: it reads every row, slice and arrow of the file.
func TestTraceInChromium(t *testing.T) {
	path := writeTrace(t, compared(t))
	b := openTab(t, "light")
	b.do(chromedp.Navigate("devtools://devtools/bundled/devtools_app.html?panel=timeline"))
	const find = `(function find(n) {
		if (n.tagName === "INPUT" && n.type === "file") return n;
		for (const c of [n.shadowRoot, ...(n.childNodes ?? [])]) { const x = c && find(c); if (x) return x; }
		return null;
	})(document.body)`
	b.until(find + ` !== null`)
	input := eval[*runtime.RemoteObject](b, find)
	_, err := chromedp.Call(b.ctx, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, ObjectID: input.ObjectID})
	require.NoError(t, err)
	eval[chromedp.Void](b, `import("./panels/timeline/timeline.js").then((m) => { globalThis.model = m.TimelinePanel.TimelinePanel.instance().model; })`)
	b.until(`model.parsedTrace(0) != null`)
	got := eval[map[string]row](b, `(() => {
		const {data} = model.parsedTrace(0), rows = {};
		for (const [pid, p] of data.Renderer.processes)
			for (const [tid, x] of p.threads)
				rows[pid + "/" + tid] = {Process: data.Meta.processNames.get(pid).args.name, Row: x.name, Slices: x.entries.length};
		return rows;
	})()`)
	want, flows := rowsOf(t, path)
	assert.Equal(t, want, got)
	assert.NotZero(t, flows)
	assert.Equal(t, flows, eval[int](b, `model.parsedTrace(0).traceEvents.filter((e) => e.ph === "s").length`))
	for _, process := range []string{"kernel-follow", "overall", "multi-stream", "device-sink"} {
		assert.Contains(t, want, "1/0")
		assert.True(t, func() bool {
			for _, r := range got {
				if r.Process == process && r.Row == "host" && r.Slices > 0 {
					return true
				}
			}
			return false
		}(), process)
	}
}
