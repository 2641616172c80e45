// Package cache holds the kernels that write keys and values into a paged
// cache, one row per slot.
//
// Every kernel updates its outputs in place: only the rows of the slots that
// are named change. Slots are device data; Run checks all of them before it
// writes anything, so a call with a bad slot changes nothing.
//
// # Sharing of work
//
// A block does the rows whose slots it owns: runs of ownerRun slots go to the
// blocks in turn. Every block walks all rows in order, so when several rows
// name one slot the last one stays, whatever the number of blocks.
package cache
