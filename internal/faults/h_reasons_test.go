package faults_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/operation/attention"
	"goatb/operation/shape"
)

// H27: a size turned a feature off, and nothing said so. A graph says which
// kernels its shapes turn off, and what inside of a kernel, with the size that did
// it; a policy says what it does not do.
func TestH27(t *testing.T) {
	reasons := func(s atb.Spec, in ...operand) string {
		c := newBed(t).ready(s, in...)
		c.again()
		var text strings.Builder
		require.NoError(t, c.op.Graph().WriteReasons(&text))
		return text.String()
	}
	rng := random(27)
	// A kernel: rows that are not contiguous are no work for the best one.
	soft := func(axis int64) atb.Spec { return shape.Softmax{Axes: []int64{axis}} }
	assert.Empty(t, reasons(soft(1), draw(rng, 4, 6)))
	assert.Contains(t, reasons(soft(0), draw(rng, 4, 6)), "softmax/columns instead of softmax/rows: slices have a stride of 6")

	// Inside of a kernel: small blocks make attention gather the cache's rows.
	paged := attention.DefaultPagedAttention()
	paged.HeadNum, paged.KVHeadNum, paged.QKScale = 2, 2, 1
	cached := func(block int64) string {
		pages := []int64{4, block, 2, 16}
		in := []operand{draw(rng, 1, 2, 16), draw(rng, pages...), draw(rng, pages...), ints([]int32{0, 1}, 1, 2), lengths(3)}
		return reasons(paged, in...)
	}
	assert.Empty(t, cached(8))
	for _, what := range []string{"keys", "values"} {
		assert.Contains(t, cached(7), what+" are gathered: want blocks of 8 positions or more, got 7")
	}

	// A filter turns kernels off too, and an operation that is left without any
	// says so.
	left := newBed(t, atb.WithKernelFilter("softmax/columns")).ready(soft(1), draw(rng, 4, 6))
	left.again()
	require.NotEmpty(t, left.op.Graph().Nodes[0].Refused)
	for _, r := range left.op.Graph().Nodes[0].Refused {
		assert.ErrorContains(t, r.Reason, `left out by the kernel filter "softmax/columns"`, r.Kernel)
	}
	none := newBed(t, atb.WithKernelFilter("!softmax/*"))
	o := none.op(soft(0))
	_, err := o.Setup(none.pack(o, none.put(draw(rng, 4, 6))), none.c)
	require.Error(t, err)
	assert.ErrorContains(t, err, "softmax/columns")

	// A policy: tilings that cannot run on the device are named, with the reason.
	b := newBed(t, atb.WithPolicy("device-sink"), atb.WithTilingScheduleOptimize("0"))
	b.run(t3Paged(), t3Pages(2, 1)...)
	fallbacks := b.c.Stats().FallbackReasons
	require.Len(t, fallbacks, 1)
	assert.Contains(t, fallbacks[0].Reason, "ge.tiling_schedule_optimize is off")
}
