package kernel

import "goatb/internal/cpu"

// Around reports whether an output of so many bytes, of a kernel that moves `moved`
// in all, is to be stored around the caches, with vec.CopyAround: what a kernel
// moves fills half of the last-level cache, of which a process has a share, so
// that nobody finds the output there.
func Around(m Machine, moved int64) bool {
	return m.L3 > 0 && moved > m.L3/2 && cpu.Active().Has(cpu.AVX2)
}
