// Package gemm generates the inner loops of matrix products.
package gemm

import "goatb/internal/asm/gen/target"

// Files lists the assembly files of package gemm.
func Files() []target.File {
	return []target.File{
		{Package: "gemm", Name: "peak", Build: peak},
	}
}
