package conformance

import (
	"encoding/json"

	"goatb/internal/conformance/reference"
)

// aliasOf tells which outputs of a call are the memory of inputs.
func aliasOf(c *reference.Input) map[int]int {
	var p struct {
		EnAccum    bool
		KVCacheCfg int
	}
	if len(c.Param) > 0 && json.Unmarshal(c.Param, &p) != nil {
		return nil
	}
	switch {
	case c.Op == "LinearOperation" && p.EnAccum:
		return map[int]int{0: 2}
	case c.Op == "IndexAddOperation":
		return map[int]int{0: 0}
	case c.Op == "ReshapeAndCacheOperation" && p.KVCacheCfg == 1:
		return map[int]int{0: 1}
	case c.Op == "ReshapeAndCacheOperation":
		return map[int]int{0: 2, 1: 3}
	}
	return nil
}
