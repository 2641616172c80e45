// Package gemm holds the inner loops of matrix products.
package gemm
