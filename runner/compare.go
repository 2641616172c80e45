package runner

import (
	"bytes"
	"context"

	"goatb/device"
	"goatb/status"
)

// compareTiling copies the tiling of kernel k back from device memory and
// compares it with the bytes that were sent. It waits for the stream.
func (r *Runner) compareTiling(k int, stream device.Stream, when string) error {
	l := &r.launches[k]
	want, _, err := r.Tiling(k)
	if err != nil {
		return err
	}
	got := make([]byte, l.Tiling.Size())
	if err := stream.Copy(device.WrapHost(got), l.Tiling); err != nil {
		return l.Label.Place(err)
	}
	if err := stream.Synchronize(context.Background()); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return l.Label.Place(status.Errorf(status.ErrRuntimeFail, "the tiling in device memory was changed %s the kernel", when))
	}
	return nil
}
