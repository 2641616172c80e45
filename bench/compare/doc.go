// Package compare runs the steps of a model under several tiling policies, on the
// simulated device or on the CPU device, and tells where the time goes: how long a
// step takes, how long host and device are busy in it, and what an idle device
// waits for.
//
// The result is plain data, which the command line prints, reports draw and
// benchmarks measure. On the simulated device two runs of one configuration give
// the same result to the last byte.
package compare
