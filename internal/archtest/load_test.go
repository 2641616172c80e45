package archtest

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoadLeavesOutWhatTheGoCommandDoes(t *testing.T) {
	ok := &fstest.MapFile{Data: []byte("package p\n\nvar x = 1\n")}
	broken := &fstest.MapFile{Data: []byte("not Go")}
	tree, err := Load(fstest.MapFS{
		"go.mod":                 {Data: []byte("// A comment.\nmodule example.org/m\n")},
		"root.go":                ok,
		"p/a.go":                 ok,
		"p/a_test.go":            ok,
		"p/_x.go":                broken,
		"p/.x.go":                broken,
		"p/a.s":                  broken,
		"p/testdata/x.go":        broken,
		"_gen/x.go":              broken,
		".git/x.go":              broken,
		"tools/go.mod":           {Data: []byte("module tools\n")},
		"tools/deep/below/it.go": broken,
	})
	require.NoError(t, err)
	assert.Equal(t, "example.org/m", tree.Module)
	var got []string
	for _, f := range tree.Files {
		got = append(got, f.Path)
		assert.Equal(t, 3, f.Lines)
	}
	assert.Equal(t, []string{"p/a.go", "p/a_test.go", "root.go"}, got)
	assert.Equal(t, []string{"p", ""}, []string{tree.Files[0].Dir, tree.Files[2].Dir})
	assert.Equal(t, []bool{false, true, false}, []bool{tree.Files[0].Test, tree.Files[1].Test, tree.Files[2].Test})
}

func TestLoadErrors(t *testing.T) {
	_, err := Load(fstest.MapFS{})
	assert.ErrorContains(t, err, "go.mod")
	_, err = Load(fstest.MapFS{"go.mod": {Data: []byte("go 1.26\n")}})
	assert.ErrorContains(t, err, "names no module")
	_, err = Load(fstest.MapFS{"go.mod": {Data: []byte("module m\n")}, "a/b.go": {Data: []byte("not Go")}})
	assert.ErrorContains(t, err, "a/b.go:1")
}
