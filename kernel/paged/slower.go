package paged

import (
	"fmt"

	"goatb/internal/vec"
	"goatb/kernel"
	"goatb/tensor"
)

// slower says why cache rows are not used where they lie, and int8 keys not as
// integers.
func slower(p *kernel.Problem, a Params) (why []string) {
	var g geometry
	if g.measure(p, a) != nil {
		return nil
	}
	for i, c := range [...]*cacheView{&g.Key, &g.Value} {
		what := [...]string{"keys", "values"}[i]
		switch {
		case g.BlockSize < directBlock:
			why = append(why, fmt.Sprintf("%s are gathered: want blocks of %d positions or more, got %d", what, directBlock, g.BlockSize))
		case !vec.CacheTakes(c.element(), int(c.Dim)):
			why = append(why, fmt.Sprintf("%s are widened: this processor has no loop over %s rows of %d elements", what, c.Type, c.Dim))
		}
	}
	if a.Quant == Dequant && g.Key.Type == tensor.Int8 && !g.Fixed && g.Key.Direct {
		why = append(why, fmt.Sprintf("keys are not multiplied as integers: this processor has no loop over int8 rows of %d elements", g.KeyDim))
	}
	return why
}
