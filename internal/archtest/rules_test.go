package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parse loads a module m of the given files.
func parse(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module goatb\n\ngo 1.26\n")}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Load(fsys)
	require.NoError(t, err)
	return tree
}

// importing is a file of a package that imports paths; a path may be given with
// a name, as in "x goatb/x".
func importing(pkg string, paths ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Package %s is for tests.\npackage %s\n\n", pkg, pkg)
	for _, p := range paths {
		name, importPath, named := strings.Cut(p, " ")
		if !named {
			name, importPath = "", p
		}
		fmt.Fprintf(&b, "import %s %q\n", name, importPath)
	}
	return b.String()
}

// ruleCase is a small tree and the breaches of one rule in it, in part.
type ruleCase struct {
	name  string
	files map[string]string
	want  []string
}

func runRule(t *testing.T, check func(*Tree) []string, cases []ruleCase) {
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			got := check(parse(t, tt.files))
			if assert.Len(t, got, len(tt.want), "%q", got) {
				for i := range got {
					assert.Contains(t, got[i], tt.want[i])
				}
			}
		})
	}
}

func file(name, text string) map[string]string { return map[string]string{name: text} }

func TestImportOrder(t *testing.T) {
	runRule(t, importOrder, []ruleCase{
		{"lower level", file("runner/a.go", importing("runner", "fmt", "goatb/kernel", "goatb/device/cpu")), nil},
		{"higher level", file("runner/a.go", importing("runner", "goatb/context")),
			[]string{"runner/a.go: package runner may not import context: level 6 may not import level 7"}},
		{"same level", file("mempool/a.go", importing("mempool", "goatb/kernel")),
			[]string{`package mempool may not import kernel: row "mempool" does not list "kernel" beside it on level 3`}},
		{"same level, listed", file("device/cpu/a.go", importing("cpu", "goatb/device")), nil},
		{"same level, listed the other way", file("device/a.go", importing("device", "goatb/device/cpu")), []string{"device may not import device/cpu"}},
		{"family imports family", file("kernel/norm/a.go", importing("norm", "goatb/kernel/softmax")), []string{`"kernel/*" does not list "kernel/*"`}},
		{"catalog imports families", file("operation/catalog/a.go", importing("catalog", "goatb/operation/norm")), nil},
		{"catalog imports a suite", file("operation/catalog/a.go", importing("catalog", "goatb/operation/optest")), []string{"catalog"}},
		{"family imports the catalog", file("operation/norm/a.go", importing("norm", "goatb/operation/catalog")), []string{"operation/norm"}},
		{"facade imports a family", file("atb/a.go", importing("atb", "goatb/operation", "goatb/operation/norm")), []string{"a program links only the families"}},
		{"facade imports the catalog", file("atb/a.go", importing("atb", "goatb/operation/catalog")), []string{"a program links only the families"}},
		{"model imports families", file("model/llama/a.go", importing("llama", "goatb/atb", "goatb/operation/norm")), nil},
		{"bench imports a model", file("bench/a.go", importing("bench", "goatb/model/llama")), nil},
		{"model imports bench", file("model/llama/a.go", importing("llama", "goatb/bench")), []string{"model/llama"}},
		{"internal is low", file("internal/asm/f32/a.go", importing("f32", "goatb/device")), []string{"level 1 may not import level 2"}},
		{"internal imports internal", file("internal/vec/a.go", importing("vec", "goatb/internal/asm/f32", "goatb/internal/workpool", "goatb/tensor")), nil},
		{"tensor imports assembly", file("tensor/a.go", importing("tensor", "goatb/internal/asm/f32")), nil},
		{"assembly is below tensor", file("internal/asm/f32/a.go", importing("f32", "goatb/internal/cpu", "goatb/tensor")), []string{"tensor"}},
		{"anyone imports internal", file("device/cpu/a.go", importing("cpu", "goatb/internal/workpool")), nil},
		{"status imports internal", file("status/a.go", importing("status", "goatb/internal/workpool")), []string{"status"}},
		{"conformance is on top", file("internal/conformance/a.go", importing("conformance", "goatb/atb", "goatb/operation/catalog")), nil},
		{"conformance has parts", map[string]string{
			"internal/conformance/a.go":           importing("conformance", "goatb/internal/conformance/reference"),
			"internal/conformance/reference/a.go": importing("reference", "goatb/device"),
		}, nil},
		{"only cmd imports conformance", map[string]string{
			"cmd/atb/main.go": importing("main", "goatb/internal/conformance", "goatb/bench"),
			"runner/a.go":     importing("runner", "goatb/internal/conformance"),
		}, []string{"runner/a.go"}},
		{"tests import what they like", file("status/a_test.go", importing("status_test", "goatb/atb")), nil},
		{"ignored files import what they like", file("status/gen.go", "//go:build ignore\n\npackage main\n\nimport \"goatb/atb\"\n"), nil},
		{"unknown package", map[string]string{"magic/a.go": importing("magic"), "magic/b.go": importing("magic")},
			[]string{`package "magic" has no level: add a row to layers`}},
		{"unknown package below a known one", file("runner/pool/a.go", importing("pool")), []string{`package "runner/pool" has no level`}},
		{"root package", file("a.go", importing("goatb")), []string{`package "" has no level`}},
		{"import of an unknown package", file("cmd/atb/main.go", importing("main", "goatb/magic")), []string{"it has no row in layers"}},
	})
}

func TestRowOfTakesTheClosestPattern(t *testing.T) {
	for pkg, want := range map[string]string{
		"kernel":                 "kernel",
		"kernel/norm":            "kernel/*",
		"kernel/kerneltest":      "kernel/kerneltest",
		"operation/catalog":      "operation/catalog",
		"internal/x":             "internal/...",
		"internal/x/y":           "internal/...",
		"internal/conformance":   "internal/conformance",
		"internal/conformance/x": "internal/conformance/...",
		"cmd/atb":                "cmd/...",
		"cmd/atb/report":         "cmd/...",
	} {
		if got := rowOf(pkg); assert.NotNil(t, got, pkg) {
			assert.Equal(t, want, got.pattern, pkg)
		}
	}
	for _, pkg := range []string{"", "kernel/norm/rms", "kernels", "internal", "cmd", "cmdx/y", "device/gpu"} {
		assert.Nil(t, rowOf(pkg), pkg)
	}
}

func TestLayersAreConsistent(t *testing.T) {
	levels := map[string]int{}
	for _, r := range layers {
		assert.NotContains(t, levels, r.pattern, "two rows")
		levels[r.pattern] = r.level
	}
	assert.True(t, slices.IsSortedFunc(layers, func(a, b row) int { return a.level - b.level }), "lowest level first")
	for _, r := range layers {
		for _, other := range r.beside {
			assert.Equal(t, r.level, levels[other], "%s lists %s beside it", r.pattern, other)
		}
	}
	for _, d := range denied {
		assert.Less(t, levels[d.to], levels[d.from], "%s to %s would be refused anyway", d.from, d.to)
	}
	for _, m := range modules {
		for _, pattern := range m.rows {
			assert.Contains(t, levels, pattern, m.path)
		}
	}
}

func TestSuitesAreForTests(t *testing.T) {
	suite := "goatb/device/devicetest"
	runRule(t, suitesAreForTests, []ruleCase{
		{"test", file("runner/a_test.go", importing("runner", suite)), nil},
		{"other suite", file("kernel/kerneltest/a.go", importing("kerneltest", suite)), nil},
		{"conformance", file("internal/conformance/a.go", importing("conformance", "goatb/operation/optest")), nil},
		{"program", file("runner/a.go", importing("runner", suite)), []string{"runner/a.go: only tests and suites import device/devicetest"}},
		{"no suite", file("runner/a.go", importing("runner", "goatb/device", "github.com/device/devicetest")), nil},
	})
}

func TestContextName(t *testing.T) {
	runRule(t, contextName, []ruleCase{
		{"as atbctx", file("atb/a.go", importing("atb", "atbctx goatb/context", "context")), nil},
		{"without a name", file("atb/a.go", importing("atb", "goatb/context")), []string{"atb/a.go: import goatb/context as atbctx"}},
		{"other name", file("atb/a_test.go", importing("atb", "ctx goatb/context")), []string{"import goatb/context as atbctx"}},
		{"inside, standard as stdctx", file("context/a.go", importing("context", "stdctx context")), nil},
		{"inside, standard without a name", file("context/a.go", importing("context", "context")), []string{"as stdctx"}},
		{"external test of it", file("context/a_test.go", importing("context_test", "context", "atbctx goatb/context")), nil},
		{"another module's context", file("atb/a.go", importing("atb", "github.com/goatb/context")), nil},
	})
}

func TestOtherModules(t *testing.T) {
	require, lru := "github.com/stretchr/testify/require", "github.com/hashicorp/golang-lru/v2/simplelru"
	runRule(t, otherModules, []ruleCase{
		{"standard library and own", file("runner/a.go", importing("runner", "testing/synctest", "goatb/kernel", "unsafe")), nil},
		{"named modules", file("runner/a.go", importing("runner", lru, "github.com/google/uuid")), nil},
		{"testify in a test", file("runner/a_test.go", importing("runner", require)), nil},
		{"testify in a suite", file("device/devicetest/a.go", importing("devicetest", require)), nil},
		{"testify in a program", file("cmd/atb/a.go", importing("main", require)), []string{"cmd/atb/a.go: only tests and suites import " + require}},
		{"other module", file("runner/a.go", importing("runner", "golang.org/x/exp/slices")), []string{"package runner may not import golang.org/x/exp/slices"}},
		{"other module in a test", file("runner/a_test.go", importing("runner", "github.com/x448/float16")), []string{"runner"}},
		{"module that begins alike", file("runner/a.go", importing("runner", "github.com/google/uuid2")), []string{"uuid2"}},
		{"other module in cmd", file("cmd/atb/a.go", importing("main", "github.com/spf13/cobra")), nil},
		{"module of some rows", file("internal/cpuid/a.go", importing("cpuid", "golang.org/x/sys/cpu")), nil},
		{"module of other rows", file("device/cpu/a.go", importing("cpu", "golang.org/x/sys/cpu")), []string{"golang.org/x/sys/cpu"}},
		{"generator that is never built", file("internal/cpuid/gen.go", "//go:build ignore\n\npackage main\n\nimport \"github.com/mmcloughlin/avo/build\"\n"), nil},
		{"cgo", file("cmd/atb/a.go", importing("main", "C")), []string{"cgo is not used here"}},
		{"cgo in a test", file("runner/a_test.go", importing("runner", "C")), []string{"cgo"}},
	})
}

func TestPackageComments(t *testing.T) {
	runRule(t, packageComments, []ruleCase{
		{"one file of two", map[string]string{"status/a.go": "package status\n", "status/b.go": importing("status")}, nil},
		{"none", file("status/a.go", "package status\n"), []string{"status: no file says what package status is for"}},
		{"detached", file("status/a.go", "// Package status is apart.\n\npackage status\n"), []string{"status"}},
		{"another name", file("status/a.go", "// Package state is apart.\npackage status\n"), []string{"status"}},
		{"another start", file("status/a.go", "// Codes and errors.\npackage status\n"), []string{"status"}},
		{"only in a test", map[string]string{"status/a.go": "package status\n", "status/a_test.go": importing("status")}, []string{"status"}},
		{"program", file("cmd/atb/a.go", "// Atb runs things.\npackage main\n"), nil},
		{"program without", file("cmd/atb/a.go", "package main\n"), []string{"cmd/atb: no file says what package main is for"}},
		{"only tests", file("status/a_test.go", "package status\n"), nil},
		{"ignored generator beside", map[string]string{"status/a.go": importing("status"), "status/gen.go": "//go:build ignore && go1.26\n\npackage main\n"}, nil},
		{"other build tags count", file("status/a.go", "//go:build noasm || !amd64\n\npackage status\n"), []string{"status"}},
	})
}

func TestNames(t *testing.T) {
	concept := "name the file after its concept"
	runRule(t, names, []ruleCase{
		{"concepts", map[string]string{"status/code.go": importing("status"), "status/typeset.go": importing("status"), "status/v8engine.go": importing("status")}, nil},
		{"util", file("status/util.go", importing("status")), []string{"status/util.go: " + concept}},
		{"helpers of tests", file("status/helpers_test.go", importing("status")), []string{concept}},
		{"common part of a name", file("status/matmul_common_amd64.go", importing("status")), []string{concept}},
		{"types", file("status/types.go", importing("status")), []string{concept}},
		{"version", file("status/v2.go", importing("status")), []string{concept}},
		{"part", file("status/matmul_part2.go", importing("status")), []string{concept}},
		{"new beside old", map[string]string{"status/sort.go": importing("status"), "status/sort_v2.go": importing("status")}, []string{"status/sort_v2.go: stands beside status/sort.go"}},
		{"an operation's own version", file("status/scatter_elements_v2.go", importing("status")), nil},
		{"package name", file("status/a.go", importing("util")), []string{"name package util after its concept"}},
		{"test of such a package", file("status/a_test.go", importing("helpers_test")), []string{"name package helpers after its concept"}},
		{"folder name", file("common/a.go", importing("status")), []string{"common/a.go"}},
	})
}

func TestFileLength(t *testing.T) {
	lines := func(n int, first string) string {
		return first + "// Package status is long.\npackage status\n" + strings.Repeat("\n", n-2-strings.Count(first, "\n"))
	}
	runRule(t, fileLength, []ruleCase{
		{"longest", file("status/a.go", lines(500, "")), nil},
		{"too long", file("status/a.go", lines(501, "")), []string{"status/a.go: want at most 500 lines, got 501"}},
		{"test", file("status/a_test.go", lines(900, "")), nil},
		{"generated", file("status/a.go", lines(900, "// Code generated by gen. DO NOT EDIT.\n\n")), nil},
		{"says generated in passing", file("status/a.go", lines(501, "// Code generated by hand.\n\n")), []string{"status/a.go"}},
	})
}

func TestForbiddenCode(t *testing.T) {
	with := func(imports, body string) string { return "package status\n\n" + imports + "\n\n" + body }
	sleep := with(`import "time"`, "func f() { time.Sleep(1) }")
	runRule(t, forbiddenCode, []ruleCase{
		{"init", file("status/a.go", with("", "func init() {}")), []string{"status/a.go:5: func init"}},
		{"init in a test", file("status/a_test.go", with("", "func init() {}")), nil},
		{"method init", file("status/a.go", with("", "type t struct{}\n\nfunc (t) init() {}")), nil},
		{"dot import", file("status/a_test.go", with(`import . "fmt"`, "")), []string{"status/a_test.go: dot import of fmt"}},
		{"blank import", file("status/a.go", with(`import _ "embed"`, "")), nil},
		{"empty interface", file("status/a_test.go", with("", "func f(x map[string]interface{}) {}")), []string{"status/a_test.go:5: write any"}},
		{"any and others", file("status/a.go", with("", "type t interface{ f(any) }")), nil},
		{"sleep", file("status/a.go", sleep), nil},
		{"sleep in a test", file("status/a_test.go", sleep), []string{"status/a_test.go:5: time.Sleep in a test"}},
		{"sleep in a suite", file("device/devicetest/a.go", sleep), []string{"time.Sleep in a test"}},
		{"sleep under another name", file("status/a_test.go", with(`import clock "time"`, "var f = clock.Sleep")), []string{"time.Sleep in a test"}},
		{"another Sleep", file("status/a_test.go", with("", "func f(time interface{ Sleep() }) { time.Sleep() }")), nil},
	})
}

func TestRulesListsEveryRule(t *testing.T) {
	var got []string
	for _, r := range Rules() {
		got = append(got, r.Name)
	}
	assert.Equal(t, []string{
		"import order", "suites are for tests", "name of package context", "modules",
		"package comments", "names", "file length", "forbidden code",
	}, got)
}
