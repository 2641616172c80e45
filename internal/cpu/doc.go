// Package cpu says which instruction sets the assembly of this module may use.
//
// The levels are ordered: None < AVX2 < AVX512. A level promises everything
// below it. AVX2 means AVX2, FMA, F16C and BMI2; AVX512 means F, BW, CD, DQ and VL.
// VNNI and BF16 come on top of AVX512 and are asked for by name.
//
// Code asks Active where it chooses a kernel and keeps the answer: a kernel is
// chosen when a call is planned or when a function begins, never in a loop.
//
// There are three switches, each of which only takes features away:
//
//   - the build tag noasm leaves all assembly out of the program;
//   - the environment variable GOATB_CPU, read once when the program starts,
//     is none, avx2, avx512 (without VNNI and BF16) or empty; other values
//     mean the same as empty;
//   - Limit, for tests, which run every path on one machine with it.
package cpu
