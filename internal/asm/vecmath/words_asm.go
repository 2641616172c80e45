//go:build amd64 && !noasm

package vecmath

import "unsafe"

var wordLoops = [4][numWordFuncs]func(dst, a, b *byte, n int){
	{addWords1, subWords1, mulWords1},
	{addWords2, subWords2, mulWords2},
	{addWords4, subWords4, mulWords4},
	{addWords8, subWords8, mulWords8},
}

var greaterLoops = [numNumbers]func(dst, a, b *byte, n int){
	Int8: greaterInt8, Int16: greaterInt16, Int32: greaterInt32, Int64: greaterInt64,
	Uint8: greaterUint8, Uint16: greaterUint16, Uint32: greaterUint32, Uint64: greaterUint64,
	Float32: greaterFloat32,
}

var equalLoops = [numNumbers]func(dst, a, b *byte, n int){
	Int8: equalWords1, Int16: equalWords2, Int32: equalWords4, Int64: equalWords8,
	Uint8: equalWords1, Uint16: equalWords2, Uint32: equalWords4, Uint64: equalWords8,
	Float32: equalFloat32,
}

var logicLoops = [numLogicFuncs]func(dst, a, b *byte, n int){And: bothTrue, Or: eitherTrue}

var conversionLoops = [numConversions]func(dst, src *byte, n int){
	Int8ToInt32: extendInt8, Uint8ToInt32: extendUint8, Int16ToInt32: extendInt16, Uint16ToInt32: extendUint16,
	Int32ToInt64: extendInt32, Uint32ToInt64: extendUint32,
	Int64ToInt32: cutInt64, Int32ToInt16: cutInt32To16, Int32ToInt8: cutInt32To8, Int32ToFloat32: int32Floats,
}

// groups returns the number of elements in whole groups, 0 without assembly.
func groups(n int) int {
	if active() == none {
		return 0
	}
	return n &^ (wordGroup - 1)
}

// Words writes f(a, b) for integers of either sign.
func Words[T any](f WordFunc, dst, a, b []T) int {
	n := groups(len(dst))
	if n == 0 {
		return 0
	}
	size := 0
	for s := unsafe.Sizeof(*new(T)); s > 1; s /= 2 {
		size++
	}
	wordLoops[size][f](start(dst), start(a[:n]), start(b[:n]), n)
	return n
}

// Greater writes 1 where a is greater than b, and 0 elsewhere.
func Greater[T any](t Number, dst []int8, a, b []T) int {
	n := groups(len(dst))
	if n == 0 {
		return 0
	}
	greaterLoops[t](start(dst), start(a[:n]), start(b[:n]), n)
	return n
}

// Equal writes 1 where a equals b, and 0 elsewhere.
func Equal[T any](t Number, dst []int8, a, b []T) int {
	n := groups(len(dst))
	if n == 0 {
		return 0
	}
	equalLoops[t](start(dst), start(a[:n]), start(b[:n]), n)
	return n
}

// Logic writes f(a, b) as 1 or 0.
func Logic(f LogicFunc, dst, a, b []uint8) int {
	n := groups(len(dst))
	if n == 0 {
		return 0
	}
	logicLoops[f](start(dst), start(a[:n]), start(b[:n]), n)
	return n
}

// Not writes 1 where src is 0, and 0 elsewhere.
func Not(dst, src []uint8) int {
	n := groups(len(dst))
	if n == 0 {
		return 0
	}
	notTrue(start(dst), start(src[:n]), n)
	return n
}

// Convert converts src.
func Convert[D, S any](c Conversion, dst []D, src []S) int {
	n := groups(len(dst))
	if n == 0 {
		return 0
	}
	conversionLoops[c](start(dst), start(src[:n]), n)
	return n
}

// FloatInts converts src towards zero, limited to low..high; NaN gives 0. A high
// of 2^31 stands for 2^31-1.
func FloatInts(dst []int32, src []float32, low, high float32) int {
	n := groups(len(dst))
	if n == 0 {
		return 0
	}
	floatInt32(start(dst), start(src[:n]), n, low, high)
	return n
}
