package archtest

import (
	"path"
	"strings"
)

// row is one line of the import order. Its pattern is a package, "x/*" for the
// packages right below x, or "x/..." for all below x; the closest pattern wins.
type row struct {
	level   int
	pattern string
	// beside lists the rows of the same level that the row's packages may
	// import.
	beside []string
	// suite marks test suites: packages that tests import, with testify.
	suite bool
}

// layers is the import order: a package imports packages of lower levels, and
// those of its own level that its row lists in beside.
var layers = []row{
	{level: 1, pattern: "status"},
	{level: 1, pattern: "internal/cpu"},
	{level: 1, pattern: "internal/asm/...", beside: []string{"internal/cpu", "internal/asm/..."}},
	{level: 1, pattern: "tensor", beside: []string{"status", "internal/cpu", "internal/asm/..."}},
	{level: 1, pattern: "internal/...", beside: []string{"status", "internal/cpu", "internal/asm/...", "tensor", "internal/..."}},
	{level: 1, pattern: "internal/refdata", suite: true},

	{level: 2, pattern: "device"},
	{level: 2, pattern: "device/cpu", beside: []string{"device", "device/trace"}},
	{level: 2, pattern: "device/sim", beside: []string{"device", "device/cpu", "device/trace", "device/sim/profile"}},
	{level: 2, pattern: "device/sim/profile"},
	{level: 2, pattern: "device/checked", beside: []string{"device"}},
	{level: 2, pattern: "device/trace", beside: []string{"device"}},
	{level: 2, pattern: "device/trace/tracetest", suite: true},
	{level: 2, pattern: "device/devicetest", beside: []string{"device"}, suite: true},

	{level: 3, pattern: "mempool", beside: []string{"mempool/optimal"}},
	{level: 3, pattern: "mempool/optimal"},
	{level: 3, pattern: "kernel"},

	{level: 4, pattern: "kernel/*", beside: []string{"kernel/parts"}},
	{level: 4, pattern: "kernel/parts"},
	{level: 4, pattern: "kernel/kerneltest", suite: true},
	{level: 4, pattern: "tilingcache"},
	{level: 4, pattern: "tiling"},
	{level: 4, pattern: "tiling/sink", beside: []string{"tiling/sink/*"}},
	{level: 4, pattern: "tiling/sink/*", beside: []string{"tiling/sink/*"}},
	{level: 4, pattern: "tiling/sink/load", beside: []string{"tiling/sink", "tiling/sink/*"}},
	{level: 4, pattern: "tiling/sink/capture", beside: []string{"tiling/sink", "tiling/sink/*", "tiling/sink/load"}},
	{level: 4, pattern: "tiling/sink/compiled", beside: []string{"tiling/sink", "tiling/sink/*", "tiling/sink/capture"}},
	{level: 4, pattern: "tiling/sink/sinktest", beside: []string{"tiling/sink", "tiling/sink/capture"}, suite: true},
	{level: 4, pattern: "tiling/tilingtest", beside: []string{"tiling"}, suite: true},

	{level: 5, pattern: "kernelgraph"},
	{level: 5, pattern: "comm"},

	{level: 6, pattern: "runner"},

	{level: 7, pattern: "context"},

	{level: 8, pattern: "operation"},
	{level: 8, pattern: "operation/*", beside: []string{"operation"}},
	{level: 8, pattern: "operation/catalog", beside: []string{"operation", "operation/*"}},
	{level: 8, pattern: "operation/optest", beside: []string{"operation"}, suite: true},

	{level: 9, pattern: "atb"},

	{level: 10, pattern: "model/*"},
	{level: 10, pattern: "bench/compare", beside: []string{"model/*"}},
	{level: 10, pattern: "bench/report", beside: []string{"bench/compare"}},
	{level: 10, pattern: "bench/roofline", beside: []string{"model/*"}},
	{level: 10, pattern: "bench/tune", beside: []string{"bench/roofline"}},
	{level: 10, pattern: "bench", beside: []string{"model/*", "bench/compare"}},
	{level: 10, pattern: "internal/conformance", beside: []string{"model/*", "internal/conformance/..."}},
	{level: 10, pattern: "internal/conformance/...", beside: []string{"internal/conformance/..."}},
	{level: 10, pattern: "cmd/...", beside: []string{"model/*", "bench", "bench/compare", "bench/report", "bench/roofline", "bench/tune", "internal/conformance", "cmd/..."}},
	{level: 10, pattern: "examples/*", beside: []string{"model/*"}},
}

// denied lists imports that the levels would allow.
var denied = []struct{ from, to, why string }{
	{"atb", "operation/*", "a program links only the families that it imports itself"},
	{"atb", "operation/catalog", "a program links only the families that it imports itself"},
}

// modules lists the modules outside the standard library that may be used, and
// the rows that may use them; no row means every package. Packages of row
// "cmd/..." may use any module; testify is for tests and suites.
var modules = []struct {
	path string
	rows []string
}{
	{path: "github.com/hashicorp/golang-lru"},
	{path: "github.com/google/uuid"},
	{path: "golang.org/x/sys", rows: []string{"internal/..."}},
}

// testModule is the module that only tests and suites may use.
const testModule = "github.com/stretchr/testify"

// rowOf returns the row of a package, nil when the table has none.
func rowOf(pkg string) *row {
	var best *row
	rank := func(r *row) int {
		switch {
		case r.pattern == pkg:
			return len(pkg) + 2
		case strings.HasSuffix(r.pattern, "/*") && path.Dir(pkg) == strings.TrimSuffix(r.pattern, "/*"):
			return len(r.pattern)
		case strings.HasSuffix(r.pattern, "/...") && strings.HasPrefix(pkg, strings.TrimSuffix(r.pattern, "...")):
			return len(r.pattern) - 2
		}
		return 0
	}
	for i := range layers {
		if n := rank(&layers[i]); n > 0 && (best == nil || n > rank(best)) {
			best = &layers[i]
		}
	}
	return best
}
