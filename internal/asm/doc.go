// Package asm is the root of the assembly of this module; it has no code.
//
// Each package below it is a family of inner loops: gemm for matrix products,
// and so on. A family has
//
//	_gen/<family>/          what generates it, with avo: one Go file per loop or
//	                        group of loops, and Files, which lists them
//	<family>/*_amd64.s      generated, with the declarations in *_amd64.go
//	<family>/*.go           by hand: what the rest of the module calls
//
// _gen is a module of its own, so that users of this module do not inherit
// avo. After a change there, run "go run ." in it and commit what it writes: the
// test of this package generates everything anew and compares.
//
// # What a loop may rely on
//
// A generated function does one bounded loop and nothing else: it checks no
// sizes, allocates nothing and calls nothing. A thread cannot be preempted in
// it, so callers cut work into pieces of at most about 100 µs. Its Go wrapper
// takes slices or checked pointers and states what it requires.
//
// Which instructions a function needs is part of its name (suffix AVX2, AVX512
// and so on) and of its wrapper's comment. Callers ask package internal/cpu once
// when they choose a kernel: kernels are rows of a kernel.Table, best first,
// plain Go last. Files with wrappers of assembly have the build line
//
//	//go:build amd64 && !noasm
//
// and a file beside them, with the opposite line, says that there is no
// assembly. Every loop is tested against plain Go or float64 with all tails,
// misaligned addresses, canaries around its outputs, NaN, infinities and
// denormals.
package asm
