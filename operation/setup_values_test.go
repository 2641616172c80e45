package operation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/status"
)

// A Setup that would be a hit but for host data that is missing now says so,
// and the next one with host data passes.
func TestHostDataThatGoesMissing(t *testing.T) {
	b := newBed(t)
	o := b.op(shift{})
	x, err := atbctx.Wrap([]float32{1}, 1)
	require.NoError(t, err)
	lengths := []int32{1, 2}
	pack := operation.VariantPack{In: []device.Tensor{x, atbctx.Host(lengths)}, Out: []device.Tensor{{Desc: x.Desc}}}
	_, err = o.Setup(pack, b.c)
	require.NoError(t, err)
	gone := operation.VariantPack{In: []device.Tensor{x, {Desc: pack.In[1].Desc}}, Out: pack.Out}
	_, err = o.Setup(gone, b.c)
	require.ErrorIs(t, err, status.ErrInvalidTensorAddr)
	require.ErrorContains(t, err, "want host data")
	_, err = o.Setup(pack, b.c)
	require.NoError(t, err)
}
