// Package sink holds the host side of tiling on the device as plain data and
// rules: who may be tiled there, on which streams, and by which tasks. It knows
// no contexts, runners or devices that run; those follow what it decides.
//
// The steps, in order:
//
//	Resolve      the option ge.tiling_schedule_optimize of session, graph, compile
//	Build.Judge  the gates: a Mark for each operation, with the reason
//	Split        segments that are captured, between operations tiled on the host
//	Assign       attached streams, private events, waits for producers of values
//	PreTile      one tiling on the host, which bounds the workspace
//	Generate     the task list; package load turns it into one of a device
//	Prepare      form v2 instead: host tilings wired into an execution graph
//
// An operation is sunk when its tiling function runs on the device's scalar
// processor, on a stream of its own that is attached to the operation's main
// stream. Then an execution runs
//
//	attached stream: (producers of read values) -> tiling -> update kernel -> record E
//	main stream:     ... -> wait E -> reset E -> N nops -> kernel
//
// so that tiling < update < record < wait < nops < kernel, while the list, which
// is the order of distribution, has the update behind the kernel whose task id it
// needs. The nops keep the kernel's queue entry out of what the device fetches
// past a wait: an entry that was fetched before its update would run as it was.
//
// Of what a tiling says only variant and block dim are patched; tiling data
// travel by their fixed address. Schedule mode, atomic flag, dynamic memory and
// workspace sizes of the launch stay those of the tiling on the host.
package sink
