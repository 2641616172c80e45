package compiled

import (
	"cmp"
	"fmt"
	"runtime/debug"

	"goatb/kernel"
)

// library is the module that this package is part of.
const library = "goatb"

// BuildName names the build of the library in this program: its version and, for
// a dependency, its checksum. It is "" where the program does not say, as those
// of go run and go test.
func BuildName() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return buildName(info)
}

func buildName(info *debug.BuildInfo) string {
	m := &info.Main
	for _, d := range info.Deps {
		if d.Path == library {
			m = cmp.Or(d.Replace, d)
		}
	}
	if m.Version == "" || m.Version == "(devel)" {
		return ""
	}
	if m.Sum == "" {
		return m.Version
	}
	return m.Version + " " + m.Sum
}

// machineText describes a machine for people.
func machineText(m *kernel.Machine) string {
	return fmt.Sprintf("%d cores, caches of %d, %d and %d bytes", m.Cores, m.L1, m.L2, m.L3)
}
