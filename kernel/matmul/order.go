package matmul

const (
	// minChunk and maxChunk bound the K-chunks: a panel of minChunk stays in
	// L1, and maxChunk bounds scratch memory for any K.
	minChunk = 512
	maxChunk = 4096
	// fewChunks is the number of chunks that long rows are cut into, so that
	// their partial sums stay small.
	fewChunks = 64
)

// chunkOf returns the length of the chunks that sums of k products are made in.
// It is part of the result: it must depend on k alone.
func chunkOf(k int64) int64 {
	return min(max(minChunk, roundUp(ceilDiv(k, fewChunks), fewChunks)), maxChunk)
}

// ceilDiv divides positive numbers, rounding up, without overflow.
func ceilDiv(a, b int64) int64 { return (a-1)/b + 1 }

// roundUp returns the smallest multiple of b that is at least a.
func roundUp(a, b int64) int64 { return ceilDiv(a, b) * b }
