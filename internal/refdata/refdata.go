// Package refdata finds the reference data that lie beside the module: tests
// read them and are skipped, saying so, where they are absent.
package refdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns a path below the folder "shared" beside the module's folder. It
// skips the test where there is no such folder; what should lie in it is the
// test's business.
func Path(t testing.TB, elem ...string) string {
	t.Helper()
	shared := filepath.Join(filepath.Dir(root(t)), "shared")
	if _, err := os.Stat(shared); err != nil {
		t.Skipf("reference data are absent: %v", err)
	}
	return filepath.Join(append([]string{shared}, elem...)...)
}

// root is the folder of go.mod, at or above the package under test.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod at or above the package")
		}
		dir = up
	}
}
