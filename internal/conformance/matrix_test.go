package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMatrixListsEveryCombinationOnce(t *testing.T) {
	seen := map[string]bool{}
	ops := map[string]int{}
	for _, c := range Matrix() {
		require.False(t, seen[c.Op+c.Name], "%s %s comes twice", c.Op, c.Name)
		seen[c.Op+c.Name] = true
		ops[c.Op]++
	}
	assert.Greater(t, ops["SelfAttentionOperation"], 170)
	assert.Greater(t, ops["PagedAttentionOperation"], 140)
	assert.Len(t, ops, 2)
}

// TestMatrixTestsWalkTheMatrix checks what Matrix claims: that the tests it
// names exist and range over the same lists.
func TestMatrixTestsWalkTheMatrix(t *testing.T) {
	walks := map[string]string{}
	dir := filepath.Join("..", "..", "operation", "attention")
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				walks[fn.Name.Name] = rangedCall(fn.Body)
			}
		}
		return nil
	}))
	assert.Equal(t, "Matrix", walks[selfMatrixTest])
	assert.Equal(t, "PagedMatrix", walks[pagedMatrixTest])
}

// rangedCall returns the function whose result a range statement of the body
// walks.
func rangedCall(body *ast.BlockStmt) string {
	name := ""
	ast.Inspect(body, func(n ast.Node) bool {
		if r, ok := n.(*ast.RangeStmt); ok && name == "" {
			if c, ok := r.X.(*ast.CallExpr); ok {
				if id, ok := c.Fun.(*ast.Ident); ok {
					name = id.Name
				}
			}
		}
		return true
	})
	return name
}
