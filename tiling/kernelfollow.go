package tiling

// KernelFollow lets the tiling of a kernel travel with its launch. It takes no
// ring block and makes no copy: it never waits for the ring, and the host tiles
// the next kernel while the device runs this one. It is the default.
type KernelFollow struct{}

// Name returns "kernel-follow".
func (KernelFollow) Name() string { return "kernel-follow" }

// UsesRings is false: the launch carries its tiling.
func (KernelFollow) UsesRings() bool { return false }

// UsesCopyStream is false.
func (KernelFollow) UsesCopyStream() bool { return false }

// Group is 1: tiling and launching alternate.
func (KernelFollow) Group() int { return 1 }

// Fences is false: a launch carries what it needs.
func (KernelFollow) Fences() bool { return false }

// Captures is false: every launch is enqueued kernel by kernel.
func (KernelFollow) Captures() bool { return false }

// Begin has nothing to take.
func (KernelFollow) Begin(*Job) error { return nil }

// Move computes the tiling of kernel k and attaches it to the launch.
func (KernelFollow) Move(j *Job, k int) error {
	b, g, err := j.Source.Tiling(k)
	if err != nil {
		return err
	}
	j.setLaunch(k, g)
	j.Launches[k].Inline = b
	j.Moved += int64(len(b))
	return nil
}

// Send has nothing to send: the tiling is in the launch.
func (KernelFollow) Send(*Job, int, int) error { return nil }

// Flush has nothing to give back.
func (KernelFollow) Flush(*Job) error { return nil }

// Start has nothing to do.
func (KernelFollow) Start(*Job) error { return nil }

// Before has nothing to order: the launch copies its tiling.
func (KernelFollow) Before(*Job, int) error { return nil }

// End has nothing to give back.
func (KernelFollow) End(*Job) error { return nil }

// Abort has nothing to give back.
func (KernelFollow) Abort(*Job) {}
