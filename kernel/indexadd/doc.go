// Package indexadd holds the kernel that adds rows to the rows of a tensor that
// indices name.
//
// What an element becomes is the sum of itself and of the updates that fall on it,
// in the order of their positions, in float32, rounded once at the end. Blocks
// share what is written, so the sums do not depend on the number of workers, and
// every element is written by one of them.
package indexadd
