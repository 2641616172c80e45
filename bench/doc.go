// Package bench compares tiling policies and measures what the host spends on
// a kernel. Everything lies in its benchmarks; docs/bench.md tells how to read
// them.
package bench
