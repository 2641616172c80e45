// The command gen writes the assembly of the packages of goatb/internal/asm:
//
//	cd internal/asm/_gen && go run . [folder]
//
// The folder is that of package asm unless another one is named; the test of
// package asm names one and compares what it finds there with the tree.
package main

import (
	"fmt"
	"os"
	"slices"

	"goatb/internal/asm/gen/attend"
	"goatb/internal/asm/gen/gemm"
	"goatb/internal/asm/gen/vecmath"
)

func main() {
	root := ".."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	for _, f := range slices.Concat(
		attend.Files(),
		gemm.Files(),
		vecmath.Files(),
	) {
		if err := f.Write(root); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}
