package operation

import (
	"slices"

	"goatb/device"
	"goatb/status"
)

// hostValues holds the values of the host ports by input, in memory that is
// reused from call to call.
type hostValues struct {
	byInput [][]int64
	fresh   []int64
	// err is what is wrong with the host data read last, of input errAt; host
	// data that is missing is nothing wrong yet.
	err   *status.OpError
	errAt int
}

// read reads the host data of the given inputs and reports whether some values
// differ from those read last.
func (v *hostValues) read(ports []int, in []device.Tensor) (changed bool) {
	v.err = nil
	for len(v.byInput) < len(in) {
		v.byInput = append(v.byInput, nil)
	}
	for _, i := range ports {
		if i >= len(in) {
			break
		}
		t := &in[i]
		if t.Desc.Empty() || t.Host == nil {
			changed = changed || v.byInput[i] != nil
			v.byInput[i] = nil
			continue
		}
		var err error
		if v.fresh, err = t.AppendValues(v.fresh[:0]); err != nil {
			v.byInput[i], changed = nil, true
			if v.err == nil {
				v.err, v.errAt = asOpError(err), i
			}
			continue
		}
		if v.byInput[i] == nil || !slices.Equal(v.fresh, v.byInput[i]) {
			v.byInput[i] = append(v.byInput[i][:0], v.fresh...)
			changed = true
		}
	}
	return changed
}

func asOpError(err error) *status.OpError {
	if e, ok := err.(*status.OpError); ok {
		return e
	}
	return status.Errorf(status.ErrInvalidTensorAddr, "%w", err)
}

// forget makes the next read report a change.
func (v *hostValues) forget() { clear(v.byInput) }
