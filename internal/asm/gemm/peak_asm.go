//go:build amd64 && !noasm

package gemm

import "goatb/internal/cpu"

var peaks = []peak{
	{cpu.AVX2, Peak{"f32/256", peakChains * 2 * 8, peakFMA256}},
	{cpu.AVX512, Peak{"f32/512", peakChains * 2 * 16, peakFMA512}},
	{cpu.BF16, Peak{"bf16/512", peakChains * 2 * 32, peakDotBF16}},
	{cpu.VNNI, Peak{"int8/512", peakChains * 2 * 64, peakDot8}},
}

var readLoop = readAVX2
