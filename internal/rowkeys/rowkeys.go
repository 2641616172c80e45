// Package rowkeys knows the keys in the parameters of ATB's operation rows and
// golden cases that are no parameters of the operation: ATB's harness lets them
// pass. Everywhere else such a key is an error.
package rowkeys

import (
	"encoding/json"
	"slices"
)

// Key is a key that rows of an operation may have, and why it says nothing.
type Key struct {
	Op string
	// In is the key of the object that it is in, empty for the parameters.
	In, Key string
	Why     string
}

// Reasons.
const (
	flat    = "an older form: the value is read from the object of the same kind (mulsParam, quantParam) only"
	older   = "an older parameter: scale and offset of quantised norms are inputs now"
	unused  = "no parameter of this part of the norm"
	harness = "says how test data are made; the operation reads the lengths from its inputs"
	derived = "an older parameter: the width of a head follows from the inputs"
)

// Keys lists the keys.
func Keys() []Key {
	return []Key{
		{"ElewiseOperation", "", "varAttr", flat},
		{"ElewiseOperation", "", "inputScale", flat},
		{"ElewiseOperation", "", "inputOffset", flat},
		{"ElewiseOperation", "", "asymmetric", flat},
		{"PagedAttentionOperation", "", "q_seq_len", harness},
		{"PagedAttentionOperation", "", "k_seq_len", harness},
		{"RmsNormOperation", "normParam", "quantInputScale", older},
		{"RmsNormOperation", "normParam", "quantInputOffset", older},
		{"RmsNormOperation", "preNormParam", "quantInputScale", older},
		{"RmsNormOperation", "preNormParam", "quantInputOffset", older},
		{"RmsNormOperation", "preNormParam", "layerNormEps", unused},
		{"SelfAttentionOperation", "", "headDim", derived},
		{"SelfAttentionOperation", "", "seqLen", harness},
	}
}

// Drop returns the parameters of a row without these keys. Parameters that have
// none, or are no JSON object, come back as they are.
func Drop(op string, param []byte) []byte {
	keys := slices.DeleteFunc(Keys(), func(k Key) bool { return k.Op != op })
	var top map[string]json.RawMessage
	if len(keys) == 0 || json.Unmarshal(param, &top) != nil {
		return param
	}
	dropped := false
	for _, k := range keys {
		dropped = drop(top, &k) || dropped
	}
	if !dropped {
		return param
	}
	out, err := json.Marshal(top)
	if err != nil {
		return param
	}
	return out
}

// drop takes one key out of its object.
func drop(top map[string]json.RawMessage, k *Key) bool {
	if k.In == "" {
		_, there := top[k.Key]
		delete(top, k.Key)
		return there
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(top[k.In], &in) != nil {
		return false
	}
	if _, there := in[k.Key]; !there {
		return false
	}
	delete(in, k.Key)
	text, err := json.Marshal(in)
	top[k.In] = text
	return err == nil
}
