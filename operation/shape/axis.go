package shape

import (
	"goatb/status"
	"goatb/tensor"
)

// axisOf resolves an axis that may count from the end.
func axisOf(name string, axis int64, d *tensor.Desc) (int, error) {
	rank := int64(d.Rank())
	if axis < -rank || axis >= rank {
		return 0, status.Errorf(status.ErrInvalidParam, "%s: want an axis from %d to %d for %s, got %d", name, -rank, rank-1, d, axis)
	}
	if axis < 0 {
		axis += rank
	}
	return int(axis), nil
}
