package catalog

import (
	"encoding/json"
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

// minimal holds parameters that types accept, where none at all are not enough.
var minimal = map[string]string{
	"ActivationOperation":     `{"activationType":1}`,
	"ElewiseOperation":        `{"elewiseType":5}`,
	"IndexAddOperation":       `{"indexType":1}`,
	"PagedAttentionOperation": `{"headNum":1,"qkScale":1,"kvHeadNum":1}`,
	"RmsNormOperation":        `{"layerType":1}`,
	"SelfAttentionOperation":  `{"headNum":1}`,
	"SliceOperation":          `{"offsets":[0],"size":[1]}`,
	"SoftmaxOperation":        `{"axes":[0]}`,
	"SortOperation":           `{"num":[1]}`,
	"TransposeOperation":      `{"perm":[0]}`,
}

// TestEveryTypeKnowsItsName decodes parameters that every type accepts and
// checks that the table's name is the signature's.
func TestEveryTypeKnowsItsName(t *testing.T) {
	for _, name := range Names() {
		spec, err := New(name, []byte(minimal[name]))
		require.NoError(t, err, name)
		sig := spec.Signature()
		assert.Equal(t, name, sig.Name)
		_, err = operation.ParseCombos(sig.Native)
		require.NoError(t, err, name)
	}
}

// TestParametersReadBack writes every type's parameters as JSON, which must name
// no key that reading refuses.
func TestParametersReadBack(t *testing.T) {
	for _, name := range Names() {
		spec, err := New(name, []byte(minimal[name]))
		require.NoError(t, err, name)
		text, err := json.Marshal(spec)
		require.NoError(t, err, name)
		again, err := New(name, text)
		require.NoError(t, err, "%s: %s", name, text)
		assert.Equal(t, spec, again)
	}
}

func TestNew(t *testing.T) {
	spec, err := New("SplitOperation", []byte(`{"splitDim":1}`))
	require.NoError(t, err)
	assert.Equal(t, shape.Split{SplitDim: 1, SplitNum: 2}, spec)
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct{ name, param, text string }{
		{"NoOperation", `{}`, `unknown operation "NoOperation": want one of "`},
		{"softmax", `{}`, `unknown operation "softmax": want one of "SoftmaxOperation", "`},
		{"", `{}`, `unknown operation "": want one of "`},
		{"LinearOperation", `{"hasbias":false}`, `LinearOperation: create: parameters: unknown key "hasbias": want one of "hasBias", "`},
		{"ElewiseOperation", `{"elewiseType":2,"varAttr":3}`, `unknown key "varAttr": it belongs at "mulsParam.varAttr"`},
		{"RmsNormOperation", `{"layerType":1,"normParam":{"eps":1e-5}}`, `unknown key "normParam.eps": want one of "epsilon", "`},
		{"SelfAttentionOperation", `{"headNum":1,"headDim":8}`, `unknown key "headDim": want one of "headNum", "`},
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
