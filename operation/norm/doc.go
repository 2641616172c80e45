// Package norm holds the operations that normalise rows: RMSNorm.
package norm
