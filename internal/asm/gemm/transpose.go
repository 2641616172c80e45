package gemm

import (
	"encoding/binary"
	"unsafe"

	"goatb/internal/cpu"
)

// Transpose turns rows of words into steps of a packed group or panel:
//
//	dst[s*dstStride + 4*r] = src[r*srcStride + 4*s] ^ flip, s < words, r < rows
//
// Strides are in bytes. A step is stored as Width words whatever the rows: those
// behind the last row repeat it, and the next step, which is stored later, may
// lie over them. So dst has room for Width words from its last step on.
type Transpose struct {
	// Width is the most rows that Turn takes, and the words that it stores for
	// each step.
	Width int64
	// Turn does it for 1 to Width rows of at least one word.
	Turn func(words int, dst *byte, dstStride int, src *byte, srcStride int, rows int, flip uint32)
}

// BestTranspose returns the fastest loop that f allows: plain Go's if there is no
// other.
func BestTranspose(f cpu.Features) Transpose {
	for i := range sets {
		if f.Has(sets[i].Needs) {
			return sets[i].Transpose
		}
	}
	return Transpose{16, transposeGo}
}

// transposeGo is Turn in plain Go.
func transposeGo(words int, dst *byte, dstStride int, src *byte, srcStride int, rows int, flip uint32) {
	to := unsafe.Slice(dst, (words-1)*dstStride+4*16)
	from := unsafe.Slice(src, (rows-1)*srcStride+4*words)
	for s := range words {
		for r := range 16 {
			word := binary.LittleEndian.Uint32(from[min(r, rows-1)*srcStride+4*s:])
			binary.LittleEndian.PutUint32(to[s*dstStride+4*r:], word^flip)
		}
	}
}
