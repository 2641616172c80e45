// Package parts holds what the attention families share to walk a long context
// in parts: the cut, the arithmetic that joins parts, the tensor that holds
// them between two kernels and the kernel that merges it.
//
// # The cut and the sum
//
// A context is cut at the multiples of Len. Over each part a kernel takes a
// softmax of its own: the largest score m, the sum l of the exponentials
// relative to it, and the values a weighted with them. Join adds part after
// part, in the order of positions, with
//
//	m = max(m', m")   l = l' e^(m'-m) + l" e^(m"-m)   a = a' e^(m'-m) + a" e^(m"-m)
//
// so no exponential overflows, and Finish divides by l. The cut depends on
// positions alone, so a row's bits depend neither on other rows, nor on the
// number of workers, nor on whether one kernel did all parts of the row or
// several kernels did them apart and Merge joined them.
//
// # Two kernels
//
// A kernel that does all parts of its rows has one item per row and head, or
// fewer. Where these do not keep the cores busy, a kernel that writes its parts
// to a View leaves the joining to Merge. A View says itself how many parts a
// row has, so Merge needs no lengths, masks or strides: its tiling stays while
// a context grows.
package parts
