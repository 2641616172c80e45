package report

import (
	"fmt"
	"strings"

	"goatb/bench/compare"
)

// change is the effect of one estimated cost on every policy.
type change struct {
	Cost   string
	Factor string
	Cells  []cell
}

// cell is a step in percent of what it was; Large is worth a look.
type cell struct {
	Text  string
	Large bool
}

// shown is the change of a step in percent from which on a line is shown.
const shown = 1

// changes lists the costs that change a step by at least a percent.
func changes(r *compare.Result) (list []change) {
	for _, s := range r.Sensitivity {
		c := change{Cost: s.Param, Factor: fmt.Sprintf("× %g", s.Factor)}
		show := false
		for i := range r.Policies {
			p := &r.Policies[i]
			percent := 0.0
			if p.StepNs > 0 {
				percent = 100 * float64(s.StepNs[p.Policy]-p.StepNs) / float64(p.StepNs)
			}
			large := percent >= shown || percent <= -shown
			show = show || large
			c.Cells = append(c.Cells, cell{signed(percent), large})
		}
		if show {
			list = append(list, c)
		}
	}
	return list
}

// signed writes a percentage with its sign, none for zero.
func signed(percent float64) string {
	text := fmt.Sprintf("%+.1f %%", percent)
	if text == "+0.0 %" || text == "-0.0 %" {
		return "0.0 %"
	}
	return strings.Replace(text, "-", "−", 1)
}
