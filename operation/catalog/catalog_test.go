package catalog

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/operation/shape"
	"goatb/status"
)

func TestNames(t *testing.T) {
	names := Names()
	assert.True(t, slices.IsSorted(names))
	assert.Contains(t, names, "SoftmaxOperation")
	for _, n := range names {
		assert.True(t, Has(n), n)
	}
	assert.False(t, Has("SoftmaxOp"))
}

// TestEveryTypeKnowsItsName decodes parameters that every type accepts and
// checks that the table's name is the signature's.
func TestEveryTypeKnowsItsName(t *testing.T) {
	minimal := map[string]string{
		"ActivationOperation":     `{"activationType":1}`,
		"ElewiseOperation":        `{"elewiseType":5}`,
		"PagedAttentionOperation": `{"headNum":1,"qkScale":1,"kvHeadNum":1}`,
		"RmsNormOperation":        `{"layerType":1}`,
		"SelfAttentionOperation":  `{"headNum":1}`,
		"SliceOperation":          `{"offsets":[0],"size":[1]}`,
		"SoftmaxOperation":        `{"axes":[0]}`,
		"TransposeOperation":      `{"perm":[0]}`,
	}
	for _, name := range Names() {
		spec, err := New(name, []byte(minimal[name]))
		require.NoError(t, err, name)
		sig := spec.Signature()
		assert.Equal(t, name, sig.Name)
		_, err = operation.ParseCombos(sig.Native)
		require.NoError(t, err, name)
	}
}

func TestNew(t *testing.T) {
	spec, err := New("SplitOperation", []byte(`{"splitDim":1}`))
	require.NoError(t, err)
	assert.Equal(t, shape.Split{SplitDim: 1, SplitNum: 2}, spec)
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ name, param, text string }{
		{"NoOperation", `{}`, `unknown operation "NoOperation"`},
		{"TransposeOperation", ``, `TransposeOperation: create: parameter "perm" is missing`},
		{"SplitOperation", `{"splitNum":9}`, "SplitOperation: create: splitNum: want 2 or 3"},
		{"SplitOperation", `{"rsv":[1]}`, "reserved"},
		{"SplitOperation", `{`, "malformed"},
	} {
		_, err := New(c.name, []byte(c.param))
		require.ErrorIs(t, err, status.ErrInvalidParam)
		assert.ErrorContains(t, err, c.text)
	}
}
