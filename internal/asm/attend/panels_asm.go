//go:build amd64 && !noasm

package attend

import "unsafe"

var panelsAVX512 = Panels{Columns: 32, wide: true, Tiles: []Tile{
	tilex1AVX512, tilex2AVX512, tilex3AVX512, tilex4AVX512, tilex5AVX512, tilex6AVX512, tilex7AVX512, tilex8AVX512, tilex9AVX512,
	tilex10AVX512, tilex11AVX512, tilex12AVX512, tilex13AVX512, tilex14AVX512,
}}

var panelsAVX2 = Panels{Columns: 16, Tiles: []Tile{
	tilex1AVX2, tilex2AVX2, tilex3AVX2, tilex4AVX2, tilex5AVX2, tilex6AVX2,
}}

func packKeysAVX512(e Elem, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e {
	case F32:
		packKeysF32AVX512(a)
	case F16:
		packKeysF16AVX512(a)
	case BF16:
		packKeysBF16AVX512(a)
	case I8:
		packKeysI8AVX512(a)
	}
}

func packKeysAVX2(e Elem, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e {
	case F32:
		packKeysF32AVX2(a)
	case F16:
		packKeysF16AVX2(a)
	case BF16:
		packKeysBF16AVX2(a)
	case I8:
		packKeysI8AVX2(a)
	}
}

func packValuesAVX512(e Elem, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e {
	case F32:
		packValuesF32AVX512(a)
	case F16:
		packValuesF16AVX512(a)
	case BF16:
		packValuesBF16AVX512(a)
	case I8:
		packValuesI8AVX512(a)
	}
}

func packValuesAVX2(e Elem, args *Args) {
	a := (*byte)(unsafe.Pointer(args))
	switch e {
	case F32:
		packValuesF32AVX2(a)
	case F16:
		packValuesF16AVX2(a)
	case BF16:
		packValuesBF16AVX2(a)
	case I8:
		packValuesI8AVX2(a)
	}
}
