// Package load turns a generated task list (package sink) into one that a
// device runs (package device): it makes the tiling contexts and the arguments
// of the tiling tasks (package image), and gives every task the memory that it
// names.
//
// All memory of the lists that it makes lies in one buffer, whose contents come
// as writes for the first execution: the host builds a context once, and one
// copy brings it to the device.
package load
