// Package runner executes planned operations.
//
// Three things are kept apart. A Plan is immutable: kernels, offsets, scratch,
// the layout of tilings. A binding is the addresses of one Execute: inputs,
// outputs, workspace. A launch consumes both: it finds or computes the tilings,
// lets the policy move them and enqueues the kernels. So one plan may be
// executed again and again with other addresses, and a cached tiling never
// knows an address.
//
// A Runner holds a plan, its binding and its local tiling cache; it serves one
// operation and is used by one goroutine at a time. Runners of closed
// operations wait in a Pool for the next operation of their type. A runner sees
// its context only through an Env.
package runner
