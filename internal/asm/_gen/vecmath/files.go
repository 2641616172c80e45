// Package vecmath generates functions of arrays: elementary functions, sums,
// conversions and moves. Every function exists for AVX2 with FMA and F16C and
// for AVX-512, from one source, and gives the same bits at both, but for what
// package vecmath says of 16-bit gates; most of those that are bound by shuffles or
// memory exist for AVX2 and serve both.
package vecmath

import "goatb/internal/asm/gen/target"

// Files lists the assembly files of package vecmath.
func Files() []target.File {
	return []target.File{
		{Package: "vecmath", Name: "around", Build: aroundFile},
		{Package: "vecmath", Name: "arith", Build: arithFile},
		{Package: "vecmath", Name: "convert", Build: convertFile},
		{Package: "vecmath", Name: "exp", Build: expFile},
		{Package: "vecmath", Name: "quant", Build: quantFile},
		{Package: "vecmath", Name: "reduce", Build: reduceFile},
		{Package: "vecmath", Name: "rotate", Build: rotateFile},
		{Package: "vecmath", Name: "rows", Build: rowsFile},
		{Package: "vecmath", Name: "soften", Build: softenFile},
		{Package: "vecmath", Name: "trig", Build: trigFile},
		{Package: "vecmath", Name: "turn", Build: turnFile},
		{Package: "vecmath", Name: "turnwide", Build: turnWideFile},
		{Package: "vecmath", Name: "words", Build: wordsFile},
	}
}
