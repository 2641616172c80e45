package archtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTree holds the module's own sources to every rule.
func TestTree(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	tree, err := Load(os.DirFS(root))
	require.NoError(t, err)
	require.Equal(t, "goatb", tree.Module)
	require.Greater(t, len(tree.Files), 20)
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, breach := range rule.Check(tree) {
				assert.Fail(t, breach)
			}
		})
	}
}
