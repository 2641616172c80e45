//go:build !amd64 || noasm

package attend

// present says that the program holds the loops.
const present = false

func scoresAVX512(Elem, int, *Args) {}
func scoresAVX2(Elem, int, *Args)   {}
func mixAVX512(Elem, int, *Args)    {}
func mixAVX2(Elem, int, *Args)      {}

func fixAVX512(*float32, int)   {}
func scoresFixedx1AVX512(*byte) {}
func scoresFixedx2AVX512(*byte) {}
func scoresFixedx4AVX512(*byte) {}

func packKeysAVX512(Elem, *Args)   {}
func packKeysAVX2(Elem, *Args)     {}
func packValuesAVX512(Elem, *Args) {}
func packValuesAVX2(Elem, *Args)   {}

var panelsAVX512, panelsAVX2 Panels
