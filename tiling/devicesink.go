package tiling

import "goatb/kernel"

// DeviceSink lets tilings leave the host: a launch is captured once as a task
// list and replayed, and the tilings that read values are computed on the device
// (package sink). What cannot be captured is launched as KernelFollow does.
type DeviceSink struct{ KernelFollow }

// Name returns "device-sink".
func (DeviceSink) Name() string { return "device-sink" }

// Captures is true.
func (DeviceSink) Captures() bool { return true }

// Constant is a tiling that was computed when a graph was prepared.
type Constant struct {
	Data []byte
	Grid kernel.Grid
}

// Wired is DeviceSink in form v2, for the launches of one prepared graph: the
// tilings that read no values are constants, the others run on the host at every
// launch. Constants has an entry for each kernel, with nil Data for one whose
// tiling runs.
type Wired struct {
	DeviceSink
	Constants []Constant
}

// Move attaches the constant of kernel k, or computes its tiling.
func (w *Wired) Move(j *Job, k int) error {
	c := &w.Constants[k]
	if c.Data == nil {
		return w.DeviceSink.Move(j, k)
	}
	j.setLaunch(k, c.Grid)
	j.Launches[k].Inline = c.Data
	j.Moved += int64(len(c.Data))
	return nil
}
