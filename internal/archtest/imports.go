package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Rule is one thing that must hold for the whole tree. Check returns a line for
// each breach.
type Rule struct {
	Name  string
	Check func(t *Tree) []string
}

// Rules lists all rules.
func Rules() []Rule {
	return []Rule{
		{"import order", importOrder},
		{"suites are for tests", suitesAreForTests},
		{"name of package context", contextName},
		{"modules", otherModules},
		{"package comments", packageComments},
		{"names", names},
		{"file length", fileLength},
		{"forbidden code", forbiddenCode},
	}
}

// importOrder checks the table of layers. Tests may import what they like.
func importOrder(t *Tree) (out []string) {
	unknown := map[string]bool{}
	for _, f := range t.Files {
		from := rowOf(f.Dir)
		if from == nil {
			if !unknown[f.Dir] {
				unknown[f.Dir] = true
				out = append(out, fmt.Sprintf("package %q has no level: add a row to layers in internal/archtest/layers.go", f.Dir))
			}
			continue
		}
		if f.Test || f.Ignored {
			continue
		}
		for _, spec := range f.imports() {
			if pkg, own := t.own(spec.path); own {
				if why := refusal(from, rowOf(pkg)); why != "" {
					out = append(out, fmt.Sprintf("%s: package %s may not import %s: %s", f.Path, f.Dir, pkg, why))
				}
			}
		}
	}
	return out
}

// refusal tells why packages of one row may not import those of another, "" if
// they may.
func refusal(from, to *row) string {
	if to == nil {
		return "it has no row in layers"
	}
	for _, d := range denied {
		if d.from == from.pattern && d.to == to.pattern {
			return d.why
		}
	}
	switch {
	case to.level < from.level:
		return ""
	case to.level > from.level:
		return fmt.Sprintf("level %d may not import level %d", from.level, to.level)
	case slices.Contains(from.beside, to.pattern):
		return ""
	}
	return fmt.Sprintf("row %q does not list %q beside it on level %d", from.pattern, to.pattern, from.level)
}

// suitesAreForTests keeps suites, and testify with them, out of programs.
func suitesAreForTests(t *Tree) (out []string) {
	for _, f := range t.Files {
		from := rowOf(f.Dir)
		if f.Test || from != nil && (from.suite || strings.HasPrefix(from.pattern, "internal/conformance")) {
			continue
		}
		for _, spec := range f.imports() {
			pkg, own := t.own(spec.path)
			if to := rowOf(pkg); own && to != nil && to.suite {
				out = append(out, fmt.Sprintf("%s: only tests and suites import %s", f.Path, pkg))
			}
		}
	}
	return out
}

// contextName wants our package context imported as atbctx and, inside it, the
// standard library's as stdctx, so that "context" alone is never ours.
func contextName(t *Tree) (out []string) {
	for _, f := range t.Files {
		for _, spec := range f.imports() {
			if spec.path == t.Module+"/context" && spec.name != "atbctx" {
				out = append(out, fmt.Sprintf("%s: import %s as atbctx", f.Path, spec.path))
			}
			if spec.path == "context" && f.Dir == "context" && f.ast.Name.Name == "context" && spec.name != "stdctx" {
				out = append(out, fmt.Sprintf("%s: import the standard library's context as stdctx", f.Path))
			}
		}
	}
	return out
}

// otherModules checks the list of modules, and that nothing uses cgo.
func otherModules(t *Tree) (out []string) {
	for _, f := range t.Files {
		from := rowOf(f.Dir)
		for _, spec := range f.imports() {
			switch {
			case spec.path == "C":
				out = append(out, fmt.Sprintf("%s: cgo is not used here", f.Path))
			case f.Ignored || !t.external(spec.path) || mayUse(from, f.Test, spec.path):
			case inModule(spec.path, testModule):
				out = append(out, fmt.Sprintf("%s: only tests and suites import %s", f.Path, spec.path))
			default:
				out = append(out, fmt.Sprintf("%s: package %s may not import %s: see modules in internal/archtest/layers.go", f.Path, f.Dir, spec.path))
			}
		}
	}
	return out
}

func mayUse(from *row, test bool, importPath string) bool {
	if inModule(importPath, testModule) {
		return test || from != nil && from.suite
	}
	if from != nil && from.pattern == "cmd/..." {
		return true
	}
	for _, m := range modules {
		if inModule(importPath, m.path) {
			return m.rows == nil || from != nil && slices.Contains(m.rows, from.pattern)
		}
	}
	return false
}

func inModule(importPath, module string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}
