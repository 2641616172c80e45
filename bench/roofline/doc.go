// Package roofline measures what a machine can do, what the operations reach on
// it, and the fraction that this is. A limit and the kernels that are held
// against it are measured in the same run, in turns: machines are shared, and
// yesterday's limit says nothing about today's kernel.
package roofline
