package runner

import (
	"fmt"
	"time"

	"goatb/device"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
	"goatb/tiling/sink/compiled"
)

// Sinking says how launches are captured under a policy that does so.
type Sinking struct {
	Form sink.Form
	Soc  sink.Profile
	// Option is the session's value of sink.OptionName.
	Option string
	// Require makes it an error that a tiling which reads values stays on the host.
	Require bool
	// Deadline bounds a run of a tiling function; 0 is the device's default.
	Deadline time.Duration
	// Log and Warn are those of capture.Settings.
	Log  func(workspace []byte) error
	Warn func(error)
	// Compiled has graphs that were captured ahead of time, nil for none.
	Compiled *compiled.File
	// Retired takes graphs that are out of date.
	Retired capture.Retired
	// Fallbacks takes the tilings that stay on the host.
	Fallbacks Fallbacks
}

// settings are those of capturing a plan, for a device that runs task lists, which
// form v2 and compiling offline do not need. compile is the compilation's option.
func (r *Runner) settings(models device.ModelDevice, compile string) (capture.Settings, error) {
	s, p := &r.env.Sinking, r.plan
	choice, err := sink.Options{Compile: compile, Graph: p.Option, Session: s.Option, Default: sink.On}.Resolve()
	if err != nil {
		return capture.Settings{}, err
	}
	out := capture.Settings{
		Name: p.root, Form: s.Form, Soc: s.Soc, Deadline: s.Deadline, Tilings: &r.env.Counters.DeviceTilings, Log: s.Log, Warn: s.Warn,
		Machine: r.env.Machine, Streams: len(p.streams), Main: p.streamIndex(p.main),
	}
	out.Build = sink.Build{Option: choice, Require: s.Require, Capable: func() (string, error) { return incapable(models, &s.Soc, s.Form) }}
	return out, nil
}

// incapable tells why a device cannot be tiled on, "" where it can.
func incapable(d device.ModelDevice, soc *sink.Profile, f sink.Form) (string, error) {
	if !soc.Sinks {
		return "SoC " + soc.Name + " cannot update queued tasks", nil
	}
	can, err := device.LimitsOf(d)
	if err != nil {
		return "", err
	}
	if !can.TaskUpdate {
		return "the device cannot update queued tasks", nil
	}
	if f == sink.SuperKernelForm {
		return "", nil
	}
	nops, err := soc.Nops()
	if err != nil {
		return "", err
	}
	fetched, err := d.Capability(device.CapPrefetch)
	if err == nil && fetched > int64(nops) {
		return fmt.Sprintf("the device fetches %d queue entries past a wait, SoC %s has %d", fetched, soc.Name, nops), nil
	}
	return "", err
}

// hostOnly tells why no part of the launches of a plan can be captured, "" where
// some may be.
func (r *Runner) hostOnly(p *pairs) string {
	if why := r.env.Singly(); why != "" {
		return why
	}
	if len(r.plan.streams) < 2 {
		return ""
	}
	for i := range r.plan.steps {
		if s := &r.plan.steps[i]; s.kernel < 0 && p.of[i] == 0 {
			return s.node.Path + ": " + otherReason(s) + " in a graph on several streams"
		}
	}
	return ""
}

// fallBack notes that all tilings of the plan stay on the host. It is an error
// where they must not.
func (r *Runner) fallBack(reason string) error {
	if r.env.Sinking.Require {
		return status.Place(status.Errorf(status.ErrInvalidParam, "its tilings must run on the device and do not: %s", reason), status.ErrInvalidParam, r.plan.root, "capture", "")
	}
	r.env.Sinking.Fallbacks.Add(Fallback{Op: r.plan.root, Gate: "graph", Reason: reason})
	return nil
}
