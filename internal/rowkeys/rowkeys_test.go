package rowkeys

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDrop(t *testing.T) {
	for _, c := range []struct{ op, param, want string }{
		{"SelfAttentionOperation", `{"headNum":1,"headDim":8,"seqLen":[1,2]}`, `{"headNum":1}`},
		{"RmsNormOperation", `{"layerType":2,"preNormParam":{"quantInputScale":1,"epsilon":1e-5}}`, `{"layerType":2,"preNormParam":{"epsilon":1e-5}}`},
	} {
		assert.JSONEq(t, c.want, string(Drop(c.op, []byte(c.param))))
	}
	for _, same := range []string{`{"headDims":8}`, `{ "headNum" : 1 }`, ``, `[1]`, `{`, `null`, `{"a":{"headDim":1}}`} {
		assert.Equal(t, same, string(Drop("SelfAttentionOperation", []byte(same))))
	}
	assert.Equal(t, `{"headDim":1}`, string(Drop("LinearOperation", []byte(`{"headDim":1}`))), "another operation's key stays")
	assert.Equal(t, `{"preNormParam":3}`, string(Drop("RmsNormOperation", []byte(`{"preNormParam":3}`))))
}

func TestKeysHaveReasons(t *testing.T) {
	seen := map[[3]string]bool{}
	for _, k := range Keys() {
		at := [3]string{k.Op, k.In, k.Key}
		assert.False(t, seen[at], at)
		seen[at] = true
		assert.NotEmpty(t, k.Why)
	}
}
