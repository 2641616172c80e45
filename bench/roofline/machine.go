package roofline

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"goatb/internal/cpu"
)

// Machine names the processor, its number for this process and the instruction
// sets that the kernels use.
func Machine() string {
	return fmt.Sprintf("%s, %d processors, %s, %s", processor(), runtime.NumCPU(), cpu.Detected(), runtime.Version())
}

// processor is the name that the system gives it, where that is easily known.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

// resident returns the bytes of the process that are in memory, -1 where the system
// does not tell.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return -1
}
