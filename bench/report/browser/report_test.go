package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
)

// openReport opens a report and waits until its timeline is drawn.
func openReport(t *testing.T, colours string, r *compare.Result) *tab {
	t.Helper()
	b := openTab(t, colours)
	b.do(chromedp.Navigate(writeReport(t, r)))
	b.until(`document.getElementById("timeline").dataset.to !== undefined`)
	return b
}

// TestTables: every number that a person reads is the one of the JSON, in either
// colours, and the page fetches nothing.
func TestTables(t *testing.T) {
	r := compared(t)
	for colours, paper := range map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"} {
		t.Run(colours, func(t *testing.T) {
			b := openReport(t, colours, r)
			assert.Equal(t, paper, eval[string](b, `getComputedStyle(document.body).backgroundColor`))
			checkTables(t, b, r)
			assert.Equal(t, len(r.Costs), eval[int](b, `document.querySelectorAll("#costs tbody tr").length`))
			assert.Equal(t, len(r.Memory.Buffers), eval[int](b, `document.querySelectorAll("#buffers tbody tr").length`))
			assert.Equal(t, len(r.Memory.Buffers), eval[int](b, `document.querySelectorAll("#plan svg rect title").length`))
			assert.Equal(t, len(r.Conclusions), eval[int](b, `document.querySelectorAll("#conclusions li").length`))
			for _, url := range b.requests {
				assert.Regexp(t, `^(file://.*/report\.html|data:.*)$`, url)
			}
			b.noErrors()
		})
	}
}

// checkTables compares the cells with the JSON that the page holds, and that with
// the comparison.
func checkTables(t *testing.T, b *tab, r *compare.Result) {
	t.Helper()
	text := eval[string](b, `document.getElementById("result").textContent`)
	want, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, string(want), text)
	var got struct {
		Policies []map[string]any `json:"policies"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	cells := eval[[]struct{ Policy, Field, Text string }](b, `[...document.querySelectorAll("td[data-field]")].map((c) => ({Policy: c.parentElement.dataset.policy, Field: c.dataset.field, Text: c.innerText}))`)
	require.Len(t, cells, 21*len(r.Policies))
	for _, c := range cells {
		var v any
		for _, p := range got.Policies {
			if p["policy"] == c.Policy {
				v = p
			}
		}
		for _, key := range strings.Split(c.Field, ".") {
			v = v.(map[string]any)[key]
		}
		n, ok := v.(float64)
		require.True(t, ok, c.Field)
		if strings.Contains(c.Field, "_ns") {
			n /= 1000
		}
		shown := json.Number(strings.ReplaceAll(c.Text, ",", ""))
		x, err := shown.Float64()
		require.NoError(t, err, "%s of %s", c.Field, c.Policy)
		assert.InDelta(t, n, x, 0.051, "%s of %s", c.Field, c.Policy)
	}
}

// TestBars: the length of a piece is its time, on one scale for all policies.
func TestBars(t *testing.T) {
	r := compared(t)
	b := openReport(t, "light", r)
	widths := eval[[][]float64](b, `[...document.querySelectorAll("#steps .bar")].map((bar) => [bar, ...bar.children].map((x) => x.getBoundingClientRect().width))`)
	require.Len(t, widths, len(r.Policies))
	longest := int64(0)
	for i := range r.Policies {
		longest = max(longest, r.Policies[i].StepNs)
	}
	for i, p := range r.Policies {
		times := []int64{p.DeviceBusyNs}
		for _, ns := range []int64{p.Idle.Tiling, p.Idle.Copy, p.Idle.Launch, p.Idle.Event, p.Idle.Ring, p.Idle.Other} {
			if ns > 0 {
				times = append(times, ns)
			}
		}
		require.Len(t, widths[i], 1+len(times), p.Policy)
		for k, ns := range times {
			assert.InDelta(t, widths[i][0]*float64(ns)/float64(longest), widths[i][k+1], 1, "%s, piece %d", p.Policy, k)
		}
	}
	b.noErrors()
}

// TestAccessible: tables have captions and headers, and what can be operated has a
// name. On a narrow screen tables scroll, and the page does not.
func TestAccessible(t *testing.T) {
	b := openReport(t, "light", compared(t))
	for what, js := range map[string]string{
		"tables without a caption":       `[...document.querySelectorAll("table")].filter((x) => !x.caption)`,
		"headers without a scope":        `[...document.querySelectorAll("th")].filter((x) => !x.scope)`,
		"rows without a header":          `[...document.querySelectorAll("tbody tr")].filter((x) => !x.querySelector("th[scope=row]"))`,
		"buttons without a name":         `[...document.querySelectorAll("button")].filter((x) => !x.ariaLabel && !x.innerText.trim())`,
		"boxes without a label":          `[...document.querySelectorAll("input")].filter((x) => !x.labels.length)`,
		"scrolling without the keyboard": `[...document.querySelectorAll(".scroll")].filter((x) => x.tabIndex !== 0)`,
		"bars without words":             `[...document.querySelectorAll(".bar")].filter((x) => !x.ariaLabel)`,
		"ids that are there twice":       `[...document.querySelectorAll("[id]")].filter((x) => document.querySelectorAll("#" + x.id).length > 1)`,
		"descriptions of nothing":        `[...document.querySelectorAll("[aria-labelledby], [aria-describedby]")].filter((x) => !document.getElementById(x.getAttribute("aria-labelledby") ?? x.getAttribute("aria-describedby")))`,
	} {
		assert.Empty(t, eval[[]string](b, js+`.map((x) => x.outerHTML.slice(0, 80))`), what)
	}
	for _, width := range []int64{1400, 390} {
		b.do(chromedp.EmulateViewport(width, 800))
		assert.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), int(width))
	}
	b.noErrors()
}

// seen is the part of time that the timeline shows.
type seen struct{ From, To float64 }

func (s seen) span() float64 { return s.To - s.From }

// act does something and returns what the timeline shows then.
func act(b *tab, before seen, steps ...chromedp.Action[chromedp.Void]) seen {
	b.t.Helper()
	b.do(steps...)
	b.until(fmt.Sprintf(`(({from, to}) => +from !== %v || +to !== %v)(document.getElementById("timeline").dataset)`, before.From, before.To))
	return look(b)
}

func look(b *tab) seen {
	b.t.Helper()
	return eval[seen](b, `(({from, to}) => ({From: +from, To: +to}))(document.getElementById("timeline").dataset)`)
}

// place brings the top of the timeline into sight and tells where it is.
func place(b *tab) struct{ X, Y float64 } {
	b.t.Helper()
	return eval[struct{ X, Y float64 }](b, `(() => {
		const canvas = document.getElementById("timeline");
		canvas.scrollIntoView({block: "start", behavior: "instant"});
		const {x, y} = canvas.getBoundingClientRect();
		return {X: x, Y: y};
	})()`)
}

func wheel(x, y, dy float64, m chromedp.Modifier) chromedp.Action[chromedp.Void] {
	return chromedp.MouseEvent(chromedp.MouseWheel, x, y, func(p *input.DispatchMouseEventParams) {
		p.DeltaX, p.DeltaY, p.Modifiers = 1e-3, dy, int64(m) // a zero would not be sent
	})
}

// TestTimeline zooms and pans by mouse, keyboard and buttons.
func TestTimeline(t *testing.T) {
	r := compared(t)
	b := openReport(t, "light", r)
	file, err := os.ReadFile(writeTrace(t, r))
	require.NoError(t, err)
	assert.True(t, string(file) == eval[string](b, `unpack()`), "the page holds the trace, to the byte")
	longest := int64(0)
	for _, l := range r.Timelines {
		for _, s := range l.Recorder.Spans() {
			if s.Category == "step" && s.Name == "0" {
				longest = max(longest, s.End.Sub(s.Start).Nanoseconds())
			}
		}
	}
	first := look(b)
	assert.InDelta(t, float64(longest)/1e3, first.To, 1e-3, "at first the longest first step")
	assert.Zero(t, first.From)
	picture := `document.getElementById("timeline").toDataURL()`
	before := eval[string](b, picture)

	all := act(b, first, chromedp.Click(chromedp.ID("all-steps")))
	assert.Greater(t, all.To, 2*first.To)
	closer := act(b, all, chromedp.Click(chromedp.ID("zoom-in")))
	assert.InEpsilon(t, all.span()/2, closer.span(), 1e-9)
	assert.NotEqual(t, before, eval[string](b, picture), "another picture")
	moved := act(b, closer, chromedp.Click(chromedp.ID("pan-right")))
	assert.InEpsilon(t, closer.From+closer.span()/4, moved.From, 1e-9)
	assert.InEpsilon(t, closer.span(), moved.span(), 1e-9)

	box := place(b)
	x, y := box.X+400, box.Y+60
	zoomed := act(b, moved, wheel(x, y, -300, chromedp.ModifierCtrl))
	assert.Less(t, zoomed.span(), moved.span()/2, "Ctrl and the wheel zoom")
	panned := act(b, zoomed, wheel(x, y, -100, chromedp.ModifierShift))
	assert.Less(t, panned.From, zoomed.From, "Shift and the wheel pan")
	dragged := act(b, panned, chromedp.DragAndDropXY(x+300, y, x, y))
	assert.InEpsilon(t, panned.span(), dragged.span(), 1e-9)
	assert.Greater(t, dragged.From, panned.From, "dragging to the left shows what is later")

	again := act(b, dragged, chromedp.KeyEvent("0"))
	assert.Equal(t, all, again, "the canvas has the focus from the drag")
	keyed := act(b, again, chromedp.KeyEvent("w"))
	assert.InEpsilon(t, all.span()/2, keyed.span(), 1e-9)
	earlier := act(b, keyed, chromedp.KeyEvent(kb.ArrowLeft))
	assert.Less(t, earlier.From, keyed.From)
	assert.Equal(t, first, act(b, earlier, chromedp.KeyEvent("1")))
	b.noErrors()
}

// TestSlices: slices can be chosen by mouse and keyboard, and tell what they are.
func TestSlices(t *testing.T) {
	b := openReport(t, "dark", compared(t))
	box := place(b)
	details := func() string { return eval[string](b, `document.getElementById("details").innerText`) }
	b.do(chromedp.MouseClickXY(box.X+300, box.Y+32))
	assert.Regexp(t, `^step 0 on host: [\d,.]+ µs, from 0\.000 µs to `, details())
	b.do(chromedp.KeyEvent(kb.ArrowDown))
	assert.Contains(t, details(), " on host: ")
	for range 10 {
		if strings.Contains(details(), "on stream 0") {
			break
		}
		b.do(chromedp.KeyEvent(kb.ArrowDown))
	}
	require.Contains(t, details(), "on stream 0")
	b.do(chromedp.KeyEvent("]"), chromedp.KeyEvent("]"), chromedp.KeyEvent("]"), chromedp.KeyEvent("["))
	assert.Regexp(t, `on stream 0: .*; blocks \d+; .*operation \w+; enqueued [\d.]+ µs before it started, by launch `, details())
	before := look(b)
	closer := act(b, before, chromedp.KeyEvent(kb.Enter))
	assert.Less(t, closer.span(), before.span()/10)
	b.do(chromedp.KeyEvent(kb.Escape))
	assert.Equal(t, "Choose a slice for its details.", details())

	tall := `document.getElementById("timeline").clientHeight`
	height := eval[int](b, tall)
	b.do(chromedp.Click(chromedp.CSS("#groups input")))
	b.until(fmt.Sprintf(`%s < %d`, tall, height))
	b.noErrors()
}
