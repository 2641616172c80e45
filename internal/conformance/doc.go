// Package conformance runs operations against ATB's test rows and golden cases.
//
// A suite is a CSV file of rows; a golden case is a safetensors file with a
// row's inputs and expected outputs. A row is created, its shapes inferred, set
// up and executed, through the whole runtime on the CPU device; what a stage
// returns is compared with the row's expectation, and outputs with the golden
// case or, for a row without one, with a float64 reference on generated data.
//
// Data are generated from fixed seeds: the same row always sees the same data.
package conformance
