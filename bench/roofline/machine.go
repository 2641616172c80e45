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
