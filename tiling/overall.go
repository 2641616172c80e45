package tiling

// Overall tiles every kernel into one host block, copies it once to one device
// block on the execute stream and then launches the kernels.
type Overall struct{}

// Name returns "overall".
func (Overall) Name() string { return "overall" }

// UsesRings is true.
func (Overall) UsesRings() bool { return true }

// UsesCopyStream is false: the copy goes to the execute stream.
func (Overall) UsesCopyStream() bool { return false }

// Group is 0: one copy carries all tilings.
func (Overall) Group() int { return 0 }

// Fences is false: Start orders all kernels.
func (Overall) Fences() bool { return false }

// Captures is false: every launch is enqueued kernel by kernel.
func (Overall) Captures() bool { return false }

// Begin takes a host and a device block.
func (Overall) Begin(j *Job) error { return j.takeBlocks() }

// Move puts the tiling of kernel k into the host block.
func (Overall) Move(j *Job, k int) error { return j.stage(k) }

// Send has nothing to send: the copy comes with Start.
func (Overall) Send(*Job, int, int) error { return nil }

// Flush has nothing to give back: the copy comes with Start.
func (Overall) Flush(*Job) error { return nil }

// Start copies the block on the main stream; the runner lets the other streams
// of the launch wait for it.
func (Overall) Start(j *Job) error {
	if j.Bytes == 0 {
		return nil
	}
	j.Moved += j.Bytes
	return j.Streams[j.Main].Copy(j.dev.Buffer().At(0, j.Bytes), j.host.Buffer().At(0, j.Bytes))
}

// Before has nothing to order: the copy is earlier in the stream.
func (Overall) Before(*Job, int) error { return nil }

// End gives both blocks back when the launch is done.
func (Overall) End(j *Job) error {
	if err := j.releaseHost(j.Streams[j.Main]); err != nil {
		return err
	}
	return j.releaseDevice(j.Streams[j.Main])
}

// Abort gives both blocks back.
func (Overall) Abort(j *Job) {
	if !j.Started {
		j.returnBlocks()
		return
	}
	j.abort(j.Streams[j.Main], j.Streams[j.Main])
}
