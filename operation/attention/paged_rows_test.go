package attention

import (
	"testing"

	"goatb/operation"
	"goatb/operation/optest"
)

func decodePaged(param []byte) (operation.Spec, error) {
	return operation.Decode(param, DefaultPagedAttention(), "headNum", "qkScale", "kvHeadNum")
}

func TestPagedRows(t *testing.T) { optest.CheckRows(t, "paged_attention", decodePaged, 80) }

func TestPagedGoldens(t *testing.T) { optest.CheckGoldens(t, "PagedAttentionOperation", decodePaged) }
