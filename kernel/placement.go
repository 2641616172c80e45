package kernel

import (
	"fmt"
	"strings"
)

// Placement is a set of places where a tiling function runs.
type Placement uint8

// Places of a tiling function. Every kernel needs OnHost: a graph is planned
// there.
const (
	// OnHost is the processor that enqueues the work.
	OnHost Placement = 1 << iota
	// OnAICPU is the scalar processor of the device.
	OnAICPU

	allPlaces = OnHost | OnAICPU
)

// Has reports whether the set holds every place of o.
func (s Placement) Has(o Placement) bool { return s&o == o }

// String gives "TILING_ON_HOST|TILING_ON_AICPU", "none" for the empty set.
func (s Placement) String() string {
	var names []string
	for i, name := range [...]string{"TILING_ON_HOST", "TILING_ON_AICPU"} {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if rest := s &^ allPlaces; rest != 0 {
		names = append(names, fmt.Sprintf("placement(%#x)", uint8(rest)))
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "|")
}
