// Package image lays the tiling context of an operation out in device memory,
// and runs tiling functions from those bytes.
//
// A sunk operation has one context, made once on the host and copied to the
// device:
//
//	TilingData header 64 | tiling data, the cap | vector header 64 | 16 workspaces of 8 | context region
//
// The region holds a tensor for each input whose value is not read and for each
// output, with a shape and no data; the names; what the operation's kernel
// declares (the compute node info); the kernel context, a table of cells; and
// the cells, one for each input and output of the tiling function.
//
// The arguments of the tiling task are a second buffer:
//
//	head 20 | a slot of 1392 for each input whose value is read | words of 8
//
// An Address in these bytes names one of the windows of memory that the task
// sees, and a place in it. A read input has a window of its own, whose memory
// the device refreshes with every execution: neither context nor arguments
// change. All numbers are little-endian.
package image
