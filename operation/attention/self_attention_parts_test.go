package attention

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
	"goatb/kernelgraph"
	"goatb/operation"
	"goatb/operation/optest"
	"goatb/tensor"
)

// longData is a call of few query rows over keys of several parts: whole ones,
// the ends of others, and a sequence of less than one. Heads 2 on 1.
func longData(c Combination, dtype tensor.DType, seed uint64) *selfData {
	d := newSelfData(c.Spec(2, 1), seed)
	d.dtype, d.maskT = dtype, dtype
	d.rows, d.keys, d.status = []int64{2, 1, 0, 1}, []int64{1700, 30, 5, 1025}, []int32{1, 1, 1, 0}
	d.pair = c.CalcType == SelfPAEncoder
	if c.MaskType.window() {
		d.spec.WindowSize = 1600
	}
	if c.MaskType == SelfMaskALiBi {
		d.lead = "h"
	}
	d.side = 700
	d.spec.QKScale = 0.6
	if c.QuantType != QuantNone && dtype != tensor.Float32 {
		d.spec.OutDataType = dtype
	}
	return d.build()
}

// kernels returns the names of a graph's kernels and its number of temporaries.
func kernels(g *kernelgraph.Graph) (names []string, temps int) {
	for i := range g.Nodes {
		names = append(names, g.Nodes[i].Kernel.Name())
	}
	for i := range g.Tensors {
		if g.Tensors[i].Kind == kernelgraph.Temp {
			temps++
		}
	}
	return names, temps
}

// TestSelfAttentionPartsMatrix compares every combination that is done in parts
// with float64, and its bits with those of one kernel on one core. Quantised
// attention, whose weights are rounded with the sum of the whole row, is not.
func TestSelfAttentionPartsMatrix(t *testing.T) {
	n := uint64(0)
	apart := 0
	for c := range Matrix() {
		n++
		t.Run(c.String(), func(t *testing.T) {
			d := longData(c, []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16}[n%3], n)
			run := optest.Case{Spec: d.spec, In: d.in, Data: d.data, Machine: kernel.Machine{Cores: 16, L1: 32 << 10, L2: 1 << 20}}
			split := optest.Run(t, run)
			out, err := operation.InferShape(d.spec, operation.Native(), d.in)
			require.NoError(t, err)
			d.check(t, floatsOf(split.Out[0], out[0].DType))
			d.checkCaches(t, &split)
			run.Machine.Cores = 1
			whole := optest.Run(t, run)
			assert.True(t, bytes.Equal(whole.Out[0], split.Out[0]), "cores change bits")

			var writes []string
			if d.spec.ports().newKey != absent {
				writes = []string{"attention/write"}
			}
			one, inParts := "attention/go", "attention/parts"
			if d.spec.likePaged() {
				one, inParts = "paged/go", "pagedparts/go"
			}
			names, temps := kernels(whole.Graph)
			assert.ElementsMatch(t, append(writes, one), names)
			assert.Zero(t, temps)
			names, temps = kernels(split.Graph)
			if c.QuantType != QuantNone {
				assert.Equal(t, []string{"attention/go"}, names)
				return
			}
			apart++
			assert.ElementsMatch(t, append(writes, inParts, "parts/merge"), names)
			assert.Equal(t, 1, temps, "the parts")
		})
	}
	assert.Greater(t, apart, 150)
}

// TestPartsChoiceHangsOnDescriptors lowers a call over long keys and over none.
func TestPartsChoiceHangsOnDescriptors(t *testing.T) {
	d := newSelfData(Combination{CalcType: SelfDecoder}.Spec(2, 1), 1)
	d.rows, d.keys = []int64{1}, []int64{1700}
	d.build()
	long, temps := kernels(d.graph(t))
	require.Equal(t, 1, temps)
	for i, p := range d.spec.Signature().In {
		if p.Host {
			clear(d.data[i])
		}
	}
	short, _ := kernels(d.graph(t))
	assert.Equal(t, long, short)
	_, dynamic := any(d.spec).(operation.Dynamic)
	assert.False(t, dynamic)
}
