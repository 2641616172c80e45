package runner

import "goatb/device"

// maxHeld is the number of launches that are handed to a stream together. A
// stream's lock and its signal to the device are paid once for all of them;
// what the device waits for the first is a fraction of a microsecond.
const maxHeld = 16

// held is a run of kernels [first, first+n) of one stream that are ready to be
// launched.
type held struct{ first, n, stream int }

// hold adds kernel k to the held ones, after launching those that it does not
// follow on.
func (r *Runner) hold(k, stream int) error {
	h := &r.held
	if h.n > 0 && (h.n == maxHeld || h.stream != stream || h.first+h.n != k) {
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
	r.held.n = 0
	ls := r.launches[h.first : h.first+h.n]
	done, err := device.LaunchAll(r.job.Streams[h.stream], ls)
	r.tally.kernels += int64(done)
	if err != nil {
		return ls[done].Label.Place(err)
	}
	return nil
}
