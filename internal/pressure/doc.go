// Package pressure tests the runtime where something runs short: tiling blocks
// while a stream stands still, room in the launch queue, processor time and
// memory of a context that does nothing, and what Close leaves behind.
package pressure
