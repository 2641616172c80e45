package report_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/bench/compare"
	"goatb/bench/report"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/model/decoder"
	"goatb/tensor"
)

// compared runs two policies on a small model.
func compared(t *testing.T, change func(*compare.Config)) *compare.Result {
	t.Helper()
	c := compare.Config{
		DType: tensor.Float16, Load: decoder.Load{Batch: 1, Context: 4096, Steps: 3},
		Policies: []string{"kernel-follow", "device-sink"}, Sensitivity: true, Timeline: true,
	}
	var err error
	c.Profile, err = profile.ByName("ascend910b")
	require.NoError(t, err)
	c.Shape, err = decoder.ByName("qwen3-0.6b")
	require.NoError(t, err)
	c.Shape.Layers = 2
	if change != nil {
		change(&c)
	}
	r, err := compare.Run(t.Context(), c)
	require.NoError(t, err)
	return r
}

func draw(t *testing.T, r *compare.Result) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, report.Write(&out, r))
	require.NotContains(t, out.String(), "ZgotmplZ", "the template refused a value")
	return out.String()
}

// element returns the text of an element with an id.
func element(t *testing.T, page, id string) string {
	t.Helper()
	_, text, ok := strings.Cut(page, `id="`+id+`">`)
	require.True(t, ok, id)
	text, _, ok = strings.Cut(text, "</script>")
	require.True(t, ok, id)
	return text
}

// timeline unpacks the trace of a page.
func timeline(t *testing.T, page string) string {
	t.Helper()
	zip, err := base64.StdEncoding.DecodeString(element(t, page, "trace"))
	require.NoError(t, err)
	z, err := gzip.NewReader(bytes.NewReader(zip))
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(b)
}

func TestPageHoldsItsData(t *testing.T) {
	r := compared(t, nil)
	page := draw(t, r)
	want, err := json.Marshal(r)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), element(t, page, "result"))
	var events bytes.Buffer
	require.NoError(t, trace.Write(&events, r.Recorders()...))
	assert.True(t, events.String() == timeline(t, page), "the timeline is the trace, to the byte")
	assert.Contains(t, events.String(), `"name":"step 2"`)
	assert.Contains(t, page, "All 3 steps")
	assert.Contains(t, page, "Decoding at context 4,096")
	assert.Contains(t, page, "op_wrapper_host")
	assert.Contains(t, page, "is faster than")
	assert.Equal(t, 1, strings.Count(page, "<svg "), "the workspace plan")
	for _, b := range r.Memory.Buffers {
		assert.Contains(t, page, "<title>"+b.Name+": ")
	}
}

// TestPageNeedsNoNetwork: it names no address but those of XML namespaces.
func TestPageNeedsNoNetwork(t *testing.T) {
	page := draw(t, compared(t, nil))
	for _, url := range regexp.MustCompile(`(?i)[a-z]+://[^\s"'<]+`).FindAllString(page, -1) {
		assert.Equal(t, "http://www.w3.org/2000/svg", url)
	}
	assert.NotRegexp(t, `(?i)<link [^>]*href="[^d]|<script [^>]*src=|@import|url\(`, page)
	assert.Contains(t, page, "default-src 'none'")
}

func TestTwoPagesAreEqual(t *testing.T) {
	assert.True(t, draw(t, compared(t, nil)) == draw(t, compared(t, nil)))
}

// TestPageWithout leaves out what there is not.
func TestPageWithout(t *testing.T) {
	page := draw(t, compared(t, func(c *compare.Config) { c.Timeline, c.Sensitivity = false, false }))
	for _, id := range []string{"timeline", "trace", "estimates"} {
		assert.NotContains(t, page, `id="`+id+`"`)
	}
	page = draw(t, &compare.Result{Profile: "cpu", Policies: []compare.Policy{}})
	for _, id := range []string{"plan", "costs", "timeline"} {
		assert.NotContains(t, page, `id="`+id+`"`)
	}
	assert.NotContains(t, page, "not a measurement")
	assert.NotContains(t, page, "NaN")
}

// TestManySteps: the timeline has the first ones, and says so.
func TestManySteps(t *testing.T) {
	r := compared(t, func(c *compare.Config) { c.Load.Steps, c.Sensitivity = 900, false })
	page := draw(t, r)
	list := regexp.MustCompile(`The first (\d+) of 900 steps`).FindStringSubmatch(page)
	require.NotNil(t, list)
	text := timeline(t, page)
	assert.Contains(t, text, `"dropped":0`)
	assert.Contains(t, text, `"name":"step 0"`)
	assert.NotContains(t, text, `"name":"step `+list[1]+`"`)
}

// TestNamesAreText: what comes from files is never code.
func TestNamesAreText(t *testing.T) {
	const evil = `</script><script>alert("x")</script><!--`
	r := compared(t, nil)
	r.Model, r.Profile, r.Costs[0].Source, r.Memory.Buffers[0].Name = evil, evil, evil, evil
	page := draw(t, r)
	assert.NotContains(t, page, "<script>alert")
	assert.Contains(t, page, "&lt;script&gt;alert")
	var got compare.Result
	require.NoError(t, json.Unmarshal([]byte(element(t, page, "result")), &got))
	assert.Equal(t, evil, got.Model)
}

// full refuses what is written.
type full struct{}

var errFull = errors.New("the disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	require.ErrorIs(t, report.Write(full{}, compared(t, nil)), errFull)
}
