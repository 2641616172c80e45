// Package target writes what a kernel family generates: one assembly file and
// one file of Go declarations per package of goatb/internal/asm.
package target

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// Constraint is the build line of every generated file.
const Constraint = "amd64,!noasm"

// File is an assembly file, Name_amd64.s with Name_amd64.go beside it, in
// package Package of goatb/internal/asm. Build adds its functions to the context.
type File struct {
	Package, Name string
	Build         func(c *build.Context)
}

// Write generates the file below root, the folder of goatb/internal/asm.
func (f File) Write(root string) error {
	c := build.NewContext()
	c.ConstraintExpr(Constraint)
	f.Build(c)
	file, err := c.Result()
	if err != nil {
		return fmt.Errorf("%s/%s: %w", f.Package, f.Name, err)
	}
	if err := merge(file); err != nil {
		return fmt.Errorf("%s/%s: %w", f.Package, f.Name, err)
	}
	if err := pass.Compile.Execute(file); err != nil {
		return fmt.Errorf("%s/%s: %s: %w", f.Package, f.Name, unallocated(file), err)
	}
	if err := encode(file); err != nil {
		return fmt.Errorf("%s/%s: %w", f.Package, f.Name, err)
	}
	cfg := printer.Config{Name: "internal/asm/_gen", Pkg: f.Package}
	for ext, p := range map[string]printer.Printer{".s": printer.NewGoAsm(cfg), ".go": printer.NewStubs(cfg)} {
		text, err := p.Print(file)
		if err != nil {
			return fmt.Errorf("%s/%s%s: %w", f.Package, f.Name, ext, err)
		}
		dir := filepath.Join(root, f.Package)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		text = append(bytes.TrimRight(text, "\n"), '\n')
		if err := os.WriteFile(filepath.Join(dir, f.Name+"_amd64"+ext), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// unallocated names the last function whose registers were to be allocated: the
// one at which that failed, if it did.
func unallocated(f *ir.File) (name string) {
	for _, fn := range f.Functions() {
		if fn.Allocation != nil {
			name = fn.Name
		}
	}
	return name
}
