//go:build amd64 && !noasm

package attend

import "unsafe"

// present says that the program holds the loops.
const present = true

func scoresAVX512(e Elem, rows int, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e<<4 | Elem(rows) {
	case F32<<4 | 1:
		scoresF32x1AVX512(a)
	case F32<<4 | 2:
		scoresF32x2AVX512(a)
	case F32<<4 | 4:
		scoresF32x4AVX512(a)
	case F32<<4 | 8:
		scoresF32x8AVX512(a)
	case F16<<4 | 1:
		scoresF16x1AVX512(a)
	case F16<<4 | 2:
		scoresF16x2AVX512(a)
	case F16<<4 | 4:
		scoresF16x4AVX512(a)
	case F16<<4 | 8:
		scoresF16x8AVX512(a)
	case BF16<<4 | 1:
		scoresBF16x1AVX512(a)
	case BF16<<4 | 2:
		scoresBF16x2AVX512(a)
	case BF16<<4 | 4:
		scoresBF16x4AVX512(a)
	case BF16<<4 | 8:
		scoresBF16x8AVX512(a)
	case I8<<4 | 1:
		scoresI8x1AVX512(a)
	case I8<<4 | 2:
		scoresI8x2AVX512(a)
	case I8<<4 | 4:
		scoresI8x4AVX512(a)
	case I8<<4 | 8:
		scoresI8x8AVX512(a)
	}
}

func scoresAVX2(e Elem, rows int, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e<<4 | Elem(rows) {
	case F32<<4 | 1:
		scoresF32x1AVX2(a)
	case F32<<4 | 2:
		scoresF32x2AVX2(a)
	case F32<<4 | 4:
		scoresF32x4AVX2(a)
	case F16<<4 | 1:
		scoresF16x1AVX2(a)
	case F16<<4 | 2:
		scoresF16x2AVX2(a)
	case F16<<4 | 4:
		scoresF16x4AVX2(a)
	case BF16<<4 | 1:
		scoresBF16x1AVX2(a)
	case BF16<<4 | 2:
		scoresBF16x2AVX2(a)
	case BF16<<4 | 4:
		scoresBF16x4AVX2(a)
	case I8<<4 | 1:
		scoresI8x1AVX2(a)
	case I8<<4 | 2:
		scoresI8x2AVX2(a)
	case I8<<4 | 4:
		scoresI8x4AVX2(a)
	}
}

func mixAVX512(e Elem, rows int, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e<<4 | Elem(rows) {
	case F32<<4 | 1:
		mixF32x1AVX512(a)
	case F32<<4 | 2:
		mixF32x2AVX512(a)
	case F32<<4 | 4:
		mixF32x4AVX512(a)
	case F32<<4 | 8:
		mixF32x8AVX512(a)
	case F16<<4 | 1:
		mixF16x1AVX512(a)
	case F16<<4 | 2:
		mixF16x2AVX512(a)
	case F16<<4 | 4:
		mixF16x4AVX512(a)
	case F16<<4 | 8:
		mixF16x8AVX512(a)
	case BF16<<4 | 1:
		mixBF16x1AVX512(a)
	case BF16<<4 | 2:
		mixBF16x2AVX512(a)
	case BF16<<4 | 4:
		mixBF16x4AVX512(a)
	case BF16<<4 | 8:
		mixBF16x8AVX512(a)
	case I8<<4 | 1:
		mixI8x1AVX512(a)
	case I8<<4 | 2:
		mixI8x2AVX512(a)
	case I8<<4 | 4:
		mixI8x4AVX512(a)
	case I8<<4 | 8:
		mixI8x8AVX512(a)
	}
}

func mixAVX2(e Elem, rows int, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e<<4 | Elem(rows) {
	case F32<<4 | 1:
		mixF32x1AVX2(a)
	case F32<<4 | 2:
		mixF32x2AVX2(a)
	case F32<<4 | 4:
		mixF32x4AVX2(a)
	case F16<<4 | 1:
		mixF16x1AVX2(a)
	case F16<<4 | 2:
		mixF16x2AVX2(a)
	case F16<<4 | 4:
		mixF16x4AVX2(a)
	case BF16<<4 | 1:
		mixBF16x1AVX2(a)
	case BF16<<4 | 2:
		mixBF16x2AVX2(a)
	case BF16<<4 | 4:
		mixBF16x4AVX2(a)
	case I8<<4 | 1:
		mixI8x1AVX2(a)
	case I8<<4 | 2:
		mixI8x2AVX2(a)
	case I8<<4 | 4:
		mixI8x4AVX2(a)
	}
}
