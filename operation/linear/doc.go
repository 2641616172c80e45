// Package linear holds the operations that are matrix products, and Multiply,
// which adds a product's kernels to a kernel graph.
package linear
