// Package metamorphic holds one test of the whole runtime: random graphs give
// the same bits under every policy, solver, device mode and cache setting, and
// on plain memory without a runtime.
//
// A graph is drawn from a seed. It has 8 to 40 nodes of many kinds, views by
// reshape functions and chunks, nodes in place, graphs inside, host values that
// tilings read, and two streams that events order; it is built from tensor ids, or
// from names with its nodes shuffled. The reference computes its kernels one after
// the other, each tensor in memory of its own. The runtime runs it with a workspace
// full of NaN, between canaries, with other data, addresses, host values and sizes
// from run to run, and twice on each Setup.
//
// Five seeded faults, each made by a layer around the device or the policy, show
// that the test would find what it looks for: they make bits differ, under each
// policy.
package metamorphic
