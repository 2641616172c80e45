//go:build amd64 && !noasm

package gemm

import "goatb/internal/cpu"

var sets = []Set{
	{Name: "avx512-bf16", Needs: cpu.BF16, Wants: cpu.FastBF16, Elem: BF16, Columns: 32, Transpose: turnAVX512, Rows: []Tile{
		tileBF16x1AVX512, tileBF16x2AVX512, tileBF16x3AVX512, tileBF16x4AVX512, tileBF16x5AVX512, tileBF16x6AVX512, tileBF16x7AVX512,
		tileBF16x8AVX512, tileBF16x9AVX512, tileBF16x10AVX512, tileBF16x11AVX512, tileBF16x12AVX512, tileBF16x13AVX512, tileBF16x14AVX512,
	}},
	{Name: "avx512-vnni", Needs: cpu.VNNI, Elem: Int8, Columns: 32, Transpose: turnAVX512, Dequant: dequantAVX512, Row: rowI8AVX512, Rows: []Tile{
		tileI8x1AVX512, tileI8x2AVX512, tileI8x3AVX512, tileI8x4AVX512, tileI8x5AVX512, tileI8x6AVX512, tileI8x7AVX512,
		tileI8x8AVX512, tileI8x9AVX512, tileI8x10AVX512, tileI8x11AVX512, tileI8x12AVX512, tileI8x13AVX512, tileI8x14AVX512,
	}},
	{Name: "avx512", Needs: cpu.AVX512, Elem: F32, Columns: 32, Transpose: turnAVX512, Row: rowF32AVX512, F16: f16AVX512, BF16: pairsAVX512, Rows: []Tile{
		tileF32x1AVX512, tileF32x2AVX512, tileF32x3AVX512, tileF32x4AVX512, tileF32x5AVX512, tileF32x6AVX512, tileF32x7AVX512,
		tileF32x8AVX512, tileF32x9AVX512, tileF32x10AVX512, tileF32x11AVX512, tileF32x12AVX512, tileF32x13AVX512, tileF32x14AVX512,
	}},
	{Name: "avx2-int8", Needs: cpu.AVX2, Elem: Int8, Signed: true, Columns: 16, Transpose: turnAVX2, Dequant: dequantAVX2, Rows: []Tile{
		tileI8x1AVX2, tileI8x2AVX2, tileI8x3AVX2, tileI8x4AVX2,
	}},
	{Name: "avx2", Needs: cpu.AVX2, Elem: F32, Columns: 16, Transpose: turnAVX2, Row: rowF32AVX2, F16: f16AVX2, BF16: pairsAVX2, Rows: []Tile{
		tileF32x1AVX2, tileF32x2AVX2, tileF32x3AVX2, tileF32x4AVX2, tileF32x5AVX2, tileF32x6AVX2,
	}},
}

var (
	turnAVX512 = Transpose{16, transposeAVX512}
	turnAVX2   = Transpose{8, transposeAVX2}

	f16AVX512 = Narrow{StepBytes: 64, Rows: []Tile{
		tileF16x1AVX512, tileF16x2AVX512, tileF16x3AVX512, tileF16x4AVX512, tileF16x5AVX512, tileF16x6AVX512, tileF16x7AVX512,
		tileF16x8AVX512, tileF16x9AVX512, tileF16x10AVX512, tileF16x11AVX512, tileF16x12AVX512, tileF16x13AVX512, tileF16x14AVX512,
	}, Widenings: []Widening{
		wideningF16x7AVX512, wideningF16x8AVX512, wideningF16x9AVX512, wideningF16x10AVX512, wideningF16x11AVX512, wideningF16x12AVX512, wideningF16x13AVX512,
		wideningF16x14AVX512,
	}}
	pairsAVX512 = Narrow{StepBytes: 128, Row: rowPairsAVX512, Rows: []Tile{
		tilePairsx1AVX512, tilePairsx2AVX512, tilePairsx3AVX512, tilePairsx4AVX512, tilePairsx5AVX512, tilePairsx6AVX512, tilePairsx7AVX512,
		tilePairsx8AVX512, tilePairsx9AVX512, tilePairsx10AVX512, tilePairsx11AVX512, tilePairsx12AVX512, tilePairsx13AVX512,
	}, Widenings: []Widening{
		wideningPairsx7AVX512, wideningPairsx8AVX512, wideningPairsx9AVX512, wideningPairsx10AVX512, wideningPairsx11AVX512, wideningPairsx12AVX512, wideningPairsx13AVX512,
	}}
	f16AVX2 = Narrow{StepBytes: 64, Rows: []Tile{
		tileF16x1AVX2, tileF16x2AVX2, tileF16x3AVX2, tileF16x4AVX2, tileF16x5AVX2, tileF16x6AVX2,
	}, Widenings: []Widening{
		wideningF16x3AVX2, wideningF16x4AVX2, wideningF16x5AVX2, wideningF16x6AVX2,
	}}
	pairsAVX2 = Narrow{StepBytes: 128, Row: rowPairsAVX2, Rows: []Tile{
		tilePairsx1AVX2, tilePairsx2AVX2, tilePairsx3AVX2, tilePairsx4AVX2, tilePairsx5AVX2,
	}, Widenings: []Widening{
		wideningPairsx3AVX2, wideningPairsx4AVX2, wideningPairsx5AVX2,
	}}
)

var acrossLoops = Across{Words: acrossWordsAVX2, Pairs: acrossPairsAVX2, Quads: acrossQuadsAVX2, F16: acrossF16AVX2, BF16: acrossBF16AVX2}
