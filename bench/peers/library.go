package peers

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebitengine/purego"
)

// folder returns where the peers' libraries are.
func folder() string {
	if d := os.Getenv("PEERS_DIR"); d != "" {
		return d
	}
	return "lib"
}

// load opens a shared library.
func load(name string) (uintptr, error) {
	path, err := filepath.Abs(filepath.Join(folder(), name))
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(path); err != nil {
		return 0, fmt.Errorf("%w: bench/peers/fetch fetches it", err)
	}
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
}

// bind sets each function variable to the library's symbol of its name. A
// symbol that is missing is an error.
func bind(lib uintptr, funcs map[string]any) error {
	for name, f := range funcs {
		sym, err := purego.Dlsym(lib, name)
		if err != nil {
			return err
		}
		register(f, sym)
	}
	return nil
}

// register sets a function variable to the function at an address.
func register(f any, address uintptr) { purego.RegisterFunc(f, address) }
