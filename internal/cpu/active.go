package cpu

import (
	"os"
	"sync/atomic"
)

// detected is what the machine, the build and the environment allow.
var detected = detect() & named(os.Getenv("GOATB_CPU"))

// limit holds the complement of what Limit allows, so that its zero value
// takes nothing away.
var limit atomic.Uint32

// Detected returns what the machine, the build and the environment allow.
func Detected() Features { return detected }

// Active returns what may be used now: Detected, less what Limit took away.
func Active() Features { return detected &^ Features(limit.Load()) }

// Limit takes everything outside allowed away from Active until the returned
// function restores what was active before. It is for tests: it holds for the
// whole process, so tests that call it must not run in parallel, and limits end
// in the reverse order of their beginning.
func Limit(allowed Features) (restore func()) {
	before := limit.Load()
	limit.Store(before | uint32(all&^allowed))
	return func() { limit.Store(before) }
}

// named returns what a value of GOATB_CPU allows.
func named(value string) Features {
	switch value {
	case "none":
		return None
	case "avx2":
		return AVX2
	case "avx512":
		return AVX512
	}
	return all
}
