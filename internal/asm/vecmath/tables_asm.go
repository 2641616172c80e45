//go:build amd64 && !noasm

package vecmath

import "goatb/internal/cpu"

// width is an index of the tables: the registers that may be used.
type width int8

const (
	none width = iota - 1
	avx2
	avx512
	widths
)

// widest available width.
func active() width {
	switch f := cpu.Active(); {
	case f.Has(cpu.AVX512):
		return avx512
	case f.Has(cpu.AVX2):
		return avx2
	}
	return none
}

// The tables of functions by width and element type, in the order of their
// constants; nil where there is no function.

var unaryLoops = [widths][numFloats][numFuncs]func(dst, src *byte, n int){{
	{negF32AVX2, reluF32AVX2, sigmoidF32AVX2, tanhF32AVX2, siluF32AVX2, geluTanhF32AVX2, geluErfF32AVX2, roundF16F32AVX2, expF32AVX2},
	{negF16AVX2, reluF16AVX2, sigmoidF16AVX2, tanhF16AVX2, siluF16AVX2, geluTanhF16AVX2, geluErfF16AVX2},
	{negBF16AVX2, reluBF16AVX2, sigmoidBF16AVX2, tanhBF16AVX2, siluBF16AVX2, geluTanhBF16AVX2, geluErfBF16AVX2},
}, {
	{negF32AVX512, reluF32AVX512, sigmoidF32AVX512, tanhF32AVX512, siluF32AVX512, geluTanhF32AVX512, geluErfF32AVX512, roundF16F32AVX512, expF32AVX512},
	{negF16AVX512, reluF16AVX512, sigmoidF16AVX512, tanhF16AVX512, siluF16AVX512, geluTanhF16AVX512, geluErfF16AVX512},
	{negBF16AVX512, reluBF16AVX512, sigmoidBF16AVX512, tanhBF16AVX512, siluBF16AVX512, geluTanhBF16AVX512, geluErfBF16AVX512},
}}

var binaryLoops = [widths][numFloats][numFuncs2]func(dst, a, b *byte, n int){{
	{addF32AVX2, subF32AVX2, mulF32AVX2, divF32AVX2, swigluF32AVX2},
	{addF16AVX2, subF16AVX2, mulF16AVX2, divF16AVX2, swigluF16AVX2},
	{addBF16AVX2, subBF16AVX2, mulBF16AVX2, divBF16AVX2, swigluBF16AVX2},
}, {
	{addF32AVX512, subF32AVX512, mulF32AVX512, divF32AVX512, swigluF32AVX512},
	{addF16AVX512, subF16AVX512, mulF16AVX512, divF16AVX512, swigluF16AVX512},
	{addBF16AVX512, subBF16AVX512, mulBF16AVX512, divBF16AVX512, swigluBF16AVX512},
}}

var swigluGradLoops = [widths][numFloats]func(dgate, dup, dy, gate, up *byte, n int){
	{swigluGradF32AVX2, swigluGradF16AVX2, swigluGradBF16AVX2},
	{swigluGradF32AVX512, swigluGradF16AVX512, swigluGradBF16AVX512},
}

var scalarLoops = [widths][numFloats][numScalarFuncs]func(dst, src *byte, n int, s float32){{
	{addScalarF32AVX2, subScalarF32AVX2, scalarSubF32AVX2, mulScalarF32AVX2, divScalarF32AVX2, scalarDivF32AVX2},
	{addScalarF16AVX2, subScalarF16AVX2, scalarSubF16AVX2, mulScalarF16AVX2, divScalarF16AVX2, scalarDivF16AVX2},
	{addScalarBF16AVX2, subScalarBF16AVX2, scalarSubBF16AVX2, mulScalarBF16AVX2, divScalarBF16AVX2, scalarDivBF16AVX2},
}, {
	{addScalarF32AVX512, subScalarF32AVX512, scalarSubF32AVX512, mulScalarF32AVX512, divScalarF32AVX512, scalarDivF32AVX512},
	{addScalarF16AVX512, subScalarF16AVX512, scalarSubF16AVX512, mulScalarF16AVX512, divScalarF16AVX512, scalarDivF16AVX512},
	{addScalarBF16AVX512, subScalarBF16AVX512, scalarSubBF16AVX512, mulScalarBF16AVX512, divScalarBF16AVX512, scalarDivBF16AVX512},
}}

var swishLoops = [widths][numFloats]func(dst, src *byte, n int, scale, low, high float32){
	{swishF32AVX2, swishF16AVX2, swishBF16AVX2},
	{swishF32AVX512, swishF16AVX512, swishBF16AVX512},
}

var quantShareLoops = [widths]func(dst *int8, src *float32, n int, share float64){quantShareAVX2, quantShareAVX512}

// quantHalvesLoops are by 16-bit type, F16 first.
var quantHalvesLoops = [widths][2]func(dst *int8, src *uint16, n int, share float32){
	{quantShareF16AVX2, quantShareBF16AVX2},
	{quantShareF16AVX512, quantShareBF16AVX512},
}

var reduceLoops = [widths][numFloats][numReductions]func(a *byte, n int) float32{{
	{sumF32AVX2, sumSquaresF32AVX2, largestF32AVX2, largestAbsF32AVX2},
	{sumF16AVX2, sumSquaresF16AVX2, largestF16AVX2, largestAbsF16AVX2},
	{sumBF16AVX2, sumSquaresBF16AVX2, largestBF16AVX2, largestAbsBF16AVX2},
}, {
	{sumF32AVX512, sumSquaresF32AVX512, largestF32AVX512, largestAbsF32AVX512},
	{sumF16AVX512, sumSquaresF16AVX512, largestF16AVX512, largestAbsF16AVX512},
	{sumBF16AVX512, sumSquaresBF16AVX512, largestBF16AVX512, largestAbsBF16AVX512},
}}

var expSumLoops = [widths][numFloats]func(dst *float32, src *byte, n int, max float32) float32{
	{expSumF32AVX2, expSumF16AVX2, expSumBF16AVX2},
	{expSumF32AVX512, expSumF16AVX512, expSumBF16AVX512},
}

var softmaxLoops = [widths][numFloats]func(dst, src *byte, exps *float32, n, count, step int){
	{softmaxF32AVX2, softmaxF16AVX2, softmaxBF16AVX2},
	{softmaxF32AVX512, softmaxF16AVX512, softmaxBF16AVX512},
}

var scaleToLoops = [widths][numFloats]func(dst, src *byte, n int, s float32){
	{mulScalarF32AVX2, scaleToF16AVX2, scaleToBF16AVX2},
	{mulScalarF32AVX512, scaleToF16AVX512, scaleToBF16AVX512},
}

var scaleMulLoops = [widths][numFloats]func(dst, a, b *byte, n int, s float32){
	{scaleMulF32AVX2, scaleMulF16AVX2, scaleMulBF16AVX2},
	{scaleMulF32AVX512, scaleMulF16AVX512, scaleMulBF16AVX512},
}

var scaleMulToLoops = [widths][numFloats]func(dst, a, b *byte, n int, s float32){
	{scaleMulF32AVX2, scaleMulToF16AVX2, scaleMulToBF16AVX2},
	{scaleMulF32AVX512, scaleMulToF16AVX512, scaleMulToBF16AVX512},
}

var rotateLoops = [widths][numFloats][numRotations]func(dst, x *byte, cos, sin *float32, n, count, stride int){{
	{rotateHalfF32AVX2, rotatePairsF32AVX2, rotateHalfStepsF32AVX2, rotatePairsStepsF32AVX2},
	{rotateHalfF16AVX2, rotatePairsF16AVX2, rotateHalfStepsF16AVX2, rotatePairsStepsF16AVX2},
	{rotateHalfBF16AVX2, rotatePairsBF16AVX2},
}, {
	{rotateHalfF32AVX512, rotatePairsF32AVX512, rotateHalfStepsF32AVX512, rotatePairsStepsF32AVX512},
	{rotateHalfF16AVX512, rotatePairsF16AVX512, rotateHalfStepsF16AVX512, rotatePairsStepsF16AVX512},
	{rotateHalfBF16AVX512, rotatePairsBF16AVX512},
}}
