//go:build amd64 && !noasm

package gemm

import "goatb/internal/cpu"

var int4Sets = []Int4Set{
	{
		Name: "avx512-vnni", Needs: cpu.VNNI, Columns: 32, Transpose: turnAVX512, Largest: largestAVX2, ToInt16: toInt16AVX2,
		Rows: []Int4Tile{tileInt4x1AVX512, tileInt4x2AVX512, tileInt4x3AVX512, tileInt4x4AVX512, tileInt4x5AVX512, tileInt4x6AVX512},
		Row:  rowInt4AVX512, Order: orderInt4AVX512,
	},
	{
		Name: "avx2", Needs: cpu.AVX2, Columns: 16, Transpose: turnAVX2, Largest: largestAVX2, ToInt16: toInt16AVX2,
		Rows: []Int4Tile{tileInt4x1AVX2, tileInt4x2AVX2},
	},
}
