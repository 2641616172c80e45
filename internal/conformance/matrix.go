package conformance

import (
	"strings"

	"goatb/operation/attention"
)

// Combination is a choice of kind, mask, cache, layout and quantisation that an
// attention operation accepts.
type Combination struct {
	Op   string `json:"op"`
	Name string `json:"combination"`
	// Covered says that a value test compares results of the combination with a
	// float64 reference, and Test names it.
	Covered bool   `json:"covered"`
	Test    string `json:"test"`
}

// The value tests of package attention that walk the same lists as Matrix.
const (
	selfMatrixTest  = "TestSelfAttentionMatrix"
	pagedMatrixTest = "TestPagedMatrix"
)

// Matrix lists every combination that attention operations accept.
func Matrix() []Combination {
	var out []Combination
	for c := range attention.Matrix() {
		op := c.Spec(2, 1).Signature().Name
		out = append(out, Combination{Op: op, Name: c.String(), Covered: true, Test: selfMatrixTest})
	}
	for p := range attention.PagedMatrix() {
		out = append(out, Combination{Op: p.Signature().Name, Name: pagedName(&p), Covered: true, Test: pagedMatrixTest})
	}
	return out
}

// pagedName gives the choices of a paged attention that differ from the default.
func pagedName(p *attention.PagedAttention) string {
	parts := []string{"mask=" + p.MaskType.String(), p.InputLayout.String()}
	for _, x := range [...]struct {
		there bool
		name  string
	}{
		{p.CalcType != attention.PagedCalcUndefined, p.CalcType.String()},
		{p.QuantType != attention.QuantNone, p.QuantType.String()},
		{p.HasQuantOffset, "offset"},
		{p.CompressType != attention.PagedCompressNone, p.CompressType.String()},
		{p.ScaleType != attention.ScaleTOR, p.ScaleType.String()},
		{p.MLAVHeadSize > 0, "MLA"},
		{p.BatchRunStatusEnable, "batchStatus"},
	} {
		if x.there {
			parts = append(parts, x.name)
		}
	}
	return strings.Join(parts, " ")
}
