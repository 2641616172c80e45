//go:build amd64 && !noasm

package vecmath

import "goatb/internal/cpu"

// width is the register width that may be used, in bits, and 0 for none.
func width() int {
	switch f := cpu.Active(); {
	case f.Has(cpu.AVX512):
		return 512
	case f.Has(cpu.AVX2):
		return 256
	}
	return 0
}
