// Package capture makes the task lists of a planned graph and replays them.
//
// New judges the kernels of a graph (package sink), cuts it into segments, and
// generates the task list of each segment that is captured. Plan.Load brings the
// lists to a device; a Graph replays them. What the host does between segments is
// the caller's.
//
// Host data that tilings read go through a block of device memory that each
// execution writes anew, so that a replay never uses values of before. Inputs,
// outputs and workspace are words of the device's address table: an execution
// sends those that moved.
package capture
