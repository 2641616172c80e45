package load

import (
	"time"

	"goatb/device"
	"goatb/status"
	"goatb/tiling/sink/image"
)

// Operation is what the tasks of one operation become.
type Operation struct {
	// Label names the operation in errors and dumps.
	Label *device.Label
	// Kernels are the launches of the operation's kernels in the order of its
	// tasks. Of one that is updated, Inline and Tiling are set here, and Blocks and
	// Key are those of the task.
	Kernels []device.Kernel
	// Sunk is there where the operation's tiling runs on the device.
	Sunk *Sunk
}

// Sunk is what tiling an operation on the device needs.
type Sunk struct {
	// Spec describes the operation to its tiling function. Values are the
	// addresses of the connected inputs whose values it reads, in order.
	Spec   *image.Spec
	Values []device.Address
	// DataBytes is what the kernel reads of the tiling data, from their start.
	DataBytes int64
	// Binary is the table of the kernel's variants.
	Binary *device.Binary
	// Log is the workspace of the log of a function that does not come with the
	// library.
	Log device.Address
	// Deadline bounds a run of the tiling function; 0 is the device's default.
	Deadline time.Duration
}

// check refuses what does not fit together. read is the number of inputs whose
// values the tiling reads.
func (s *Sunk) check(l *image.Layout) error {
	switch {
	case len(s.Values) != l.Read:
		return status.Errorf(status.ErrInternal, "want the addresses of %d values, got %d", l.Read, len(s.Values))
	case s.DataBytes < 0 || s.DataBytes > l.Data:
		return status.Errorf(status.ErrInternal, "want at most %d bytes of tiling data, got %d", l.Data, s.DataBytes)
	}
	return nil
}
