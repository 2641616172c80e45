package attention

import (
	"testing"

	"goatb/operation"
	"goatb/operation/optest"
)

func decodeSelf(param []byte) (operation.Spec, error) {
	return operation.Decode(param, DefaultSelfAttention())
}

// Rows 1, 3, 35, 297 and 298 have generators that replace their shapes; the
// golden test runs them with the right ones.
func TestSelfAttentionRows(t *testing.T) {
	optest.CheckRows(t, "self_attention", decodeSelf, 189, "1", "3", "35", "297", "298")
}
