package runner

import "goatb/device"

// The number of launches that are handed to a stream together grows from minHeld
// to maxHeld. A stream's lock and its signal to the device are paid once for all
// of them; a device that has nothing to do gets the first ones early.
const (
	minHeld = 2
	maxHeld = 16
)

// held is a run of kernels [first, first+n) of one stream that are ready to be
// launched, and the length at which they are.
type held struct{ first, n, stream, full int }

// hold adds kernel k to the held ones, after launching those that it does not
// follow on.
func (r *Runner) hold(k, stream int) error {
	h := &r.held
	if h.n > 0 && (h.n == h.full || h.stream != stream || h.first+h.n != k) {
		if err := r.launchHeld(); err != nil {
			return err
		}
	}
	if h.n == 0 {
		h.first, h.stream = k, stream
	}
	h.n++
	return nil
}

// launchOne launches kernel k by itself.
func (r *Runner) launchOne(k, stream int) error {
	if h := r.env.Host; h != nil {
		h.Begin(device.LaunchWork, r.launches[k].Program)
		defer h.End(device.LaunchWork)
	}
	if err := r.hold(k, stream); err != nil {
		return err
	}
	return r.launchHeld()
}

// launchHeld launches what is held.
func (r *Runner) launchHeld() error {
	h := r.held
	if h.n == 0 {
		return nil
	}
	r.held.n, r.held.full = 0, min(2*h.full, maxHeld)
	ls := r.launches[h.first : h.first+h.n]
	done, err := device.LaunchAll(r.job.Streams[h.stream], ls)
	r.tally.kernels += int64(done)
	if err != nil {
		return ls[done].Label.Place(err)
	}
	return nil
}
