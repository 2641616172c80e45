//go:build !noasm

package cpu

import "golang.org/x/sys/cpu"

// detect asks the processor and the system.
func detect() Features {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasFMA || !x.HasF16C || !x.HasBMI2 {
		return None
	}
	if !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512CD || !x.HasAVX512DQ || !x.HasAVX512VL {
		return AVX2
	}
	f := AVX512
	if x.HasAVX512VNNI {
		f |= VNNI
	}
	if x.HasAVX512BF16 {
		f |= BF16
		if b, d, c := vendor(); b != genuineB || d != genuineD || c != genuineC {
			f |= FastBF16
		}
	}
	return f
}

// vendor returns the three parts of the processor's vendor.
func vendor() (b, d, c uint32)

// The vendor "GenuineIntel".
const (
	genuineB = 'G' | 'e'<<8 | 'n'<<16 | 'u'<<24
	genuineD = 'i' | 'n'<<8 | 'e'<<16 | 'I'<<24
	genuineC = 'n' | 't'<<8 | 'e'<<16 | 'l'<<24
)
