package browser_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
	"goatb/bench/report"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/model/decoder"
	"goatb/tensor"
	"goatb/tiling"
)

// findBrowser returns the path of a Chromium.
func findBrowser(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if name := os.Getenv("CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("no browser found under %s", strings.Join(names, ", "))
	}
	t.Skipf("no browser found under %s: install one, or name it in CHROMIUM", strings.Join(names, ", "))
	return ""
}

// limit is the time for one test: far more than it needs, so that a hanging browser
// does not stop all others.
const limit = 90 * time.Second

// tab is a page of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	bad      []string // errors and warnings of the console
	requests []string // addresses fetched
}

// openTab starts a browser with an empty page. Colours are "light" or "dark".
func openTab(t *testing.T, colours string) *tab {
	t.Helper()
	path := findBrowser(t)
	ctx, stop := context.WithTimeout(t.Context(), limit)
	t.Cleanup(stop)
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1400, 900),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, stopAll := chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(stopAll)
	ctx, stopTab := chromedp.NewContext(ctx)
	t.Cleanup(stopTab)
	b := &tab{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.listen))
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
	})
	require.NoError(t, err)
	return b
}

// listen keeps what is wrong and what is fetched.
func (b *tab) listen(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.bad = append(b.bad, fmt.Sprintf("exception: %+v", e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			for _, a := range e.Args {
				b.bad = append(b.bad, fmt.Sprintf("console %s: %s %s", e.Type, a.Value, a.Description))
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.bad = append(b.bad, fmt.Sprintf("log %s: %s", e.Entry.Level, e.Entry.Text))
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// noErrors wants a silent console.
func (b *tab) noErrors() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.bad)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, steps...))
}

// eval runs JavaScript and waits for what it promises.
func eval[T any](b *tab, js string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, js)
	return v
}

// until waits until JavaScript says true.
func (b *tab) until(js string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](js))
	require.NoError(b.t, err, js)
}

// compared runs all policies on a small model.
func compared(t *testing.T) *compare.Result {
	t.Helper()
	c := compare.Config{
		DType: tensor.Float16, Load: decoder.Load{Batch: 2, Context: 300, Steps: 3}, Sensitivity: true, Timeline: true,
	}
	for _, p := range tiling.Policies() {
		c.Policies = append(c.Policies, p.Name())
	}
	var err error
	c.Profile, err = profile.ByName("ascend910b")
	require.NoError(t, err)
	c.Shape, err = decoder.ByName("qwen3-0.6b")
	require.NoError(t, err)
	c.Shape.Layers = 3
	r, err := compare.Run(t.Context(), c)
	require.NoError(t, err)
	return r
}

// writeReport writes a comparison's page and returns its address.
func writeReport(t *testing.T, r *compare.Result) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, report.Write(&out, r))
	return "file://" + write(t, "report.html", out.Bytes())
}

// writeTrace writes a comparison's timeline.
func writeTrace(t *testing.T, r *compare.Result) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, trace.Write(&out, r.Recorders()...))
	return write(t, "trace.json", out.Bytes())
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}
