// Package attend generates the inner loops of attention: products of a few rows
// with the rows of a cache, as they lie there.
package attend

import (
	"github.com/mmcloughlin/avo/build"

	"goatb/internal/asm/gen/target"
)

// Files lists the assembly files of package attend.
func Files() []target.File {
	var out []target.File
	for _, x := range []struct {
		name string
		wide bool
		most int
	}{{"avx512", true, 14}, {"avx2", false, 6}} {
		out = append(out,
			target.File{Package: "attend", Name: "scores_" + x.name, Build: func(c *build.Context) { all(c, x.wide, scores) }},
			target.File{Package: "attend", Name: "mix_" + x.name, Build: func(c *build.Context) { all(c, x.wide, mix) }},
			target.File{Package: "attend", Name: "tile_" + x.name, Build: func(c *build.Context) { tiles(c, x.wide, x.most) }},
			target.File{Package: "attend", Name: "pack_" + x.name, Build: func(c *build.Context) { packs(c, x.wide) }},
		)
	}
	return append(out, target.File{Package: "attend", Name: "fixed_avx512", Build: fixedFile})
}

// all makes a loop for every element type and number of rows.
func all(c *build.Context, wide bool, make func(v isa, t rowType, rows int)) {
	v := newISA(c, wide)
	for _, t := range rowTypes {
		for _, rows := range v.counts {
			make(v, t, rows)
		}
	}
}
