package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
)

// maxLines is the most lines of a file that people write; tests may be longer.
const maxLines = 500

// packageComments wants a comment on every package: "Package x ..." for
// libraries, anything for programs.
func packageComments(t *Tree) (out []string) {
	type key struct{ dir, name string }
	documented := map[key]bool{}
	var order []key
	for _, f := range t.Files {
		if f.Test || f.Ignored {
			continue
		}
		k := key{f.Dir, f.ast.Name.Name}
		if _, seen := documented[k]; !seen {
			documented[k] = false
			order = append(order, k)
		}
		text := f.ast.Doc.Text()
		if k.name == "main" && text != "" || strings.HasPrefix(text, "Package "+k.name+" ") {
			documented[k] = true
		}
	}
	for _, k := range order {
		if !documented[k] {
			out = append(out, fmt.Sprintf("%s: no file says what package %s is for", k.dir, k.name))
		}
	}
	return out
}

// vagueWords name no concept.
var vagueWords = []string{"util", "utils", "common", "helper", "helpers", "types", "misc"}

var (
	numbered = regexp.MustCompile(`^(v|part)[0-9]+$`)
	part     = regexp.MustCompile(`^part[0-9]+$`)
	version  = regexp.MustCompile(`_v[0-9]+$`)
)

// names wants files and packages named after what they are about.
func names(t *Tree) (out []string) {
	stems := map[string]bool{}
	for _, f := range t.Files {
		stems[stem(f)] = true
	}
	for _, f := range t.Files {
		base := path.Base(stem(f))
		words := strings.Split(base, "_")
		older := version.ReplaceAllString(stem(f), "")
		switch {
		case slices.ContainsFunc(words, isVague), numbered.MatchString(base):
			out = append(out, fmt.Sprintf("%s: name the file after its concept", f.Path))
		case older != stem(f) && stems[older]:
			out = append(out, fmt.Sprintf("%s: stands beside %s.go, replace that one", f.Path, older))
		}
		pkg := strings.TrimSuffix(f.ast.Name.Name, "_test")
		if isVague(pkg) || numbered.MatchString(pkg) || slices.ContainsFunc(strings.Split(f.Dir, "/"), isVague) {
			out = append(out, fmt.Sprintf("%s: name package %s after its concept", f.Path, pkg))
		}
	}
	return out
}

// stem is a file's path without endings.
func stem(f *File) string { return strings.TrimSuffix(strings.TrimSuffix(f.Path, ".go"), "_test") }

func isVague(word string) bool { return slices.Contains(vagueWords, word) || part.MatchString(word) }

// fileLength limits files that people write.
func fileLength(t *Tree) (out []string) {
	for _, f := range t.Files {
		if !f.Test && f.Lines > maxLines && !ast.IsGenerated(f.ast) {
			out = append(out, fmt.Sprintf("%s: want at most %d lines, got %d: split it by concept", f.Path, maxLines, f.Lines))
		}
	}
	return out
}

// forbiddenCode refuses init functions, dot imports, the old spelling of any,
// and tests that sleep.
func forbiddenCode(t *Tree) (out []string) {
	for _, f := range t.Files {
		from := rowOf(f.Dir)
		inTest := f.Test || from != nil && from.suite
		timeName := ""
		for _, spec := range f.imports() {
			if spec.name == "." {
				out = append(out, fmt.Sprintf("%s: dot import of %s", f.Path, spec.path))
			}
			if spec.path == "time" {
				timeName = "time"
				if spec.name != "" {
					timeName = spec.name
				}
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil && !f.Test {
					out = append(out, fmt.Sprintf("%s: func init: make the value where it is used", f.at(n.Pos())))
				}
			case *ast.InterfaceType:
				if n.Methods.NumFields() == 0 {
					out = append(out, fmt.Sprintf("%s: write any instead of interface{}", f.at(n.Pos())))
				}
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && inTest && timeName != "" && id.Name == timeName && n.Sel.Name == "Sleep" {
					out = append(out, fmt.Sprintf("%s: time.Sleep in a test: wait for what happens", f.at(n.Pos())))
				}
			}
			return true
		})
	}
	return out
}
