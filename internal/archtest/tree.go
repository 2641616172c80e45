// Package archtest holds the rules of the source tree: which package may import
// which, and what no file may contain. Its test reads the module's sources in
// the test process and fails with one line for each breach.
//
// The import order is the table in layers.go; a new package needs a row there.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Tree is the parsed source of a module.
type Tree struct {
	// Module is the path that go.mod declares.
	Module string
	Files  []*File
}

// File is one Go source file.
type File struct {
	// Path is slash-separated, from the module's root; Dir is its folder, ""
	// for the root.
	Path, Dir string
	// Test says that the name ends in _test.go.
	Test bool
	// Ignored says that no ordinary build compiles the file, as with the tag
	// "ignore".
	Ignored bool
	// Lines counts the lines.
	Lines int

	ast  *ast.File
	fset *token.FileSet
}

// Load reads every Go file of the module whose root is fsys. It leaves out what
// the go command does: folders named testdata, folders that begin with "." or
// "_", and nested modules.
func Load(fsys fs.FS) (*Tree, error) {
	module, err := moduleName(fsys)
	if err != nil {
		return nil, err
	}
	t := &Tree{Module: module}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && skipDir(fsys, name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasPrefix(path.Base(name), ".") || strings.HasPrefix(path.Base(name), "_") {
			return nil
		}
		f, err := loadFile(fsys, name)
		if err != nil {
			return err
		}
		t.Files = append(t.Files, f)
		return nil
	})
	return t, err
}

func moduleName(fsys fs.FS) (string, error) {
	text, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("go.mod names no module")
}

func skipDir(fsys fs.FS, name string) bool {
	base := path.Base(name)
	if base == "testdata" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
	return err == nil
}

func loadFile(fsys fs.FS, name string) (*File, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	f := &File{
		Path: name, Dir: strings.TrimPrefix(path.Dir(name), "."),
		Test:  strings.HasSuffix(name, "_test.go"),
		Lines: bytes.Count(src, []byte("\n")),
		fset:  token.NewFileSet(),
	}
	f.ast, err = parser.ParseFile(f.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f.Ignored = needsIgnoreTag(f.ast)
	return f, nil
}

// needsIgnoreTag reports whether the file's build line asks for the tag
// "ignore", which no build sets.
func needsIgnoreTag(f *ast.File) bool {
	for _, group := range f.Comments {
		if group.Pos() > f.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			return err == nil && !expr.Eval(func(tag string) bool { return tag != "ignore" })
		}
	}
	return false
}

// importSpec is one import of a file.
type importSpec struct {
	path, name string
}

// imports lists the file's imports; name is "" where the file gives none.
func (f *File) imports() []importSpec {
	specs := make([]importSpec, 0, len(f.ast.Imports))
	for _, s := range f.ast.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			p = s.Path.Value
		}
		spec := importSpec{path: p}
		if s.Name != nil {
			spec.name = s.Name.Name
		}
		specs = append(specs, spec)
	}
	return specs
}

// own returns the package of this module that an import path names, from the
// module's root.
func (t *Tree) own(importPath string) (string, bool) {
	if importPath == t.Module {
		return "", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}

// external reports whether an import path lies in another module.
func (t *Tree) external(importPath string) bool {
	if _, own := t.own(importPath); own {
		return false
	}
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}

// at gives the file and line of a position.
func (f *File) at(pos token.Pos) string {
	return f.Path + ":" + strconv.Itoa(f.fset.Position(pos).Line)
}
