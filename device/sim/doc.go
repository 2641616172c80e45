// Package sim is a simulated accelerator: the device contract on a virtual
// clock whose costs come from a profile.
//
// # Two passes
//
// Work is done and timed apart. The work itself, kernels, copies, waits and
// errors, is done by an inline CPU device inside the call that enqueues it. The
// time that it would take is computed by an event simulation of the host
// thread, the streams with their launch queues, the AI cores, the copy engines
// and the AI CPUs. Every call costs the host time; a wait moves the host's clock
// to the moment that it waits for. What takes which time depends on nothing but
// the calls and the profile: a program whose calls come from one goroutine sees
// the same times, to the nanosecond, in every run.
//
// # Numerics
//
// With numerics on kernels compute real values, so a model says what it says on
// the CPU device. With numerics off no kernel runs, and device memory above 16 MiB
// is a size without bytes: models of any size can be timed. Areas from Reserve,
// host memory and small buffers are real in both modes, so tilings travel as
// they always do, and host code can fill indices.
//
// # Time
//
// The host's clock starts at 0 when the device is opened. device.HostOf gives
// the account that work above the device is charged to, and WithRecorder a
// timeline. Polling costs time as any call does, so loops around Query end.
package sim
