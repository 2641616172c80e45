package badargs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// api lists what a package exports: its functions by name, generic ones for one
// type, and a pointer to a value of each type that can have methods. Users hold
// values of types; those of made are the library's, which makes them with
// constructors and passes them between packages: their methods are called on what
// constructors return, if at all, never on nil or zeros, and zeros of them are no
// arguments.
type api struct {
	dir   string
	funcs funcs
	types types
	made  types
}

type (
	funcs map[string]any
	types []any
)

func tables() []api {
	return slices.Concat(lowAPI(), deviceAPI(), planAPI(), operationAPI(), userAPI())
}

// exported reads the names that a package exports: functions, and types that are
// neither interfaces nor other names of types.
func exported(t *testing.T, dir string) (functions, typeNames []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(dir), "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, dir)
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		f, err := parser.ParseFile(token.NewFileSet(), p, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					functions = append(functions, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() && !s.Assign.IsValid() && !isInterface(s.Type) {
						typeNames = append(typeNames, s.Name.Name)
					}
				}
			}
		}
	}
	return functions, typeNames
}

func isInterface(e ast.Expr) bool {
	_, ok := e.(*ast.InterfaceType)
	return ok
}

func TestTablesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range tables() {
		assert.False(t, seen[a.dir], "%s twice", a.dir)
		seen[a.dir] = true
		var functions, typeNames []string
		for name := range a.funcs {
			functions = append(functions, name)
		}
		for _, v := range slices.Concat(a.types, a.made) {
			typeNames = append(typeNames, reflect.TypeOf(v).Elem().Name())
		}
		wantFunctions, wantTypes := exported(t, a.dir)
		assert.ElementsMatch(t, wantFunctions, functions, "functions of %s", a.dir)
		assert.ElementsMatch(t, wantTypes, typeNames, "types of %s", a.dir)
	}
	for _, pattern := range []string{"operation/*", "model/*"} {
		dirs, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		require.NoError(t, err)
		for _, d := range dirs {
			dir := strings.TrimPrefix(filepath.ToSlash(d), "../../")
			if info, err := os.Stat(d); err != nil || !info.IsDir() || dir == "operation/optest" || dir == "operation/profiles" {
				continue
			}
			assert.True(t, seen[dir], "package %s has no table", dir)
		}
	}
}
