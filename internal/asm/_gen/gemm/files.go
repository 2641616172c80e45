// Package gemm generates the inner loops of matrix products.
package gemm

import "goatb/internal/asm/gen/target"

// Files lists the assembly files of package gemm.
func Files() []target.File {
	return []target.File{
		{Package: "gemm", Name: "peak", Build: peak},
		{Package: "gemm", Name: "read", Build: read},
		{Package: "gemm", Name: "fetch", Build: fetch},
		{Package: "gemm", Name: "tile_f32_avx512", Build: tileF32AVX512},
		{Package: "gemm", Name: "tile_f32_avx2", Build: tileF32AVX2},
		{Package: "gemm", Name: "row_f32_avx512", Build: rowF32AVX512},
		{Package: "gemm", Name: "row_f32_avx2", Build: rowF32AVX2},
		{Package: "gemm", Name: "row_i8_avx512", Build: rowI8AVX512},
		{Package: "gemm", Name: "tile_bf16_avx512", Build: tileBF16AVX512},
		{Package: "gemm", Name: "tile_i8_avx512", Build: tileI8AVX512},
		{Package: "gemm", Name: "tile_i8_avx2", Build: tileI8AVX2},
		{Package: "gemm", Name: "narrow_avx512", Build: narrowAVX512},
		{Package: "gemm", Name: "narrow_avx2", Build: narrowAVX2},
		{Package: "gemm", Name: "row_pairs_avx512", Build: rowPairsAVX512},
		{Package: "gemm", Name: "row_pairs_avx2", Build: rowPairsAVX2},
		{Package: "gemm", Name: "transpose_avx512", Build: transposeAVX512},
		{Package: "gemm", Name: "transpose_avx2", Build: transposeAVX2},
		{Package: "gemm", Name: "across_avx2", Build: acrossAVX2},
		{Package: "gemm", Name: "tile_int4_avx512", Build: tileInt4AVX512},
		{Package: "gemm", Name: "tile_int4_avx2", Build: tileInt4AVX2},
		{Package: "gemm", Name: "row_int4_avx512", Build: rowInt4AVX512},
		{Package: "gemm", Name: "quantize_avx2", Build: quantizeAVX2},
		{Package: "gemm", Name: "dequant_avx512", Build: dequantAVX512},
		{Package: "gemm", Name: "dequant_avx2", Build: dequantAVX2},
	}
}
