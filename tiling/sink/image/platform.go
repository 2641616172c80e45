package image

import "goatb/kernel"

// PlatformBytes is the size of the platform information.
const PlatformBytes = 64

// PutPlatform writes what a tiling on the device learns about the machine to
// dst, which has PlatformBytes. It depends on the machine alone: one copy serves
// all operations of a model.
func PutPlatform(dst []byte, m kernel.Machine) {
	clear(dst[:PlatformBytes])
	accelerator := int64(0)
	if m.Accelerator {
		accelerator = 1
	}
	for i, v := range [...]int64{int64(m.Cores), m.L1, m.L2, m.L3, accelerator} {
		le.PutUint64(dst[8*i:], uint64(v))
	}
}

func getPlatform(src []byte) kernel.Machine {
	word := func(i int) int64 { return int64(le.Uint64(src[8*i:])) }
	return kernel.Machine{Cores: int(word(0)), L1: word(1), L2: word(2), L3: word(3), Accelerator: word(4) != 0}
}
