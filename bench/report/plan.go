package report

import (
	"bytes"
	"html/template"

	"goatb/bench/compare"
	"goatb/mempool"
)

// drawPlan draws a workspace plan. Its offsets count from the start of the arena,
// behind the scratch memory.
func drawPlan(m *compare.Memory) (template.HTML, error) {
	if len(m.Buffers) == 0 {
		return "", nil
	}
	var t mempool.Table
	r := mempool.Result{Arena: m.Arena, LowerBound: m.LowerBound, Method: m.Method, Optimal: m.Optimal, PeakAt: int64(m.PeakAt)}
	for _, b := range m.Buffers {
		t.IDs = append(t.IDs, b.Name)
		t.Items = append(t.Items, mempool.Item{Size: b.Size, First: int64(b.First), Last: int64(b.Last)})
		r.Offsets = append(r.Offsets, b.Offset-m.Scratch)
	}
	var out bytes.Buffer
	err := mempool.WriteSVG(&out, t, r)
	return template.HTML(out.String()), err
}
