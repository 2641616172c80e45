package mempool

import (
	"strconv"

	"goatb/status"
)

// SolverType chooses how an arena is laid out. The numbers are those of
// ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE.
type SolverType uint8

// Solver types.
const (
	// BruteForce gives every item its own room and reuses nothing.
	BruteForce SolverType = iota
	// FirstFit reuses the lowest unused block that is large enough, whole.
	FirstFit
	// BestFit reuses the smallest unused block that is large enough, whole.
	BestFit
	// Intervals splits and merges unused room and takes the lowest that fits.
	Intervals
	// Optimal plans all items at once, see Planner. It is no online Solver.
	Optimal
)

var solverNames = [...]string{"brute-force", "first-fit", "best-fit", "intervals", "optimal"}

// SolverTypes is the number of solver types; the types are 0 to SolverTypes-1.
const SolverTypes = len(solverNames)

// String returns the type's name, such as "first-fit".
func (t SolverType) String() string {
	if int(t) >= len(solverNames) {
		return "solver(" + strconv.Itoa(int(t)) + ")"
	}
	return solverNames[t]
}

// ParseSolverType reads a name or a number, "first-fit" or "1". Anything else
// is ErrInvalidParam.
func ParseSolverType(text string) (SolverType, error) {
	for i, name := range solverNames {
		if text == name || text == strconv.Itoa(i) {
			return SolverType(i), nil
		}
	}
	return 0, status.Errorf(status.ErrInvalidParam, "want a solver type of 0 to %d or a name of %v, got %q", SolverTypes-1, solverNames, text)
}

// MarshalText gives the type's name. An unknown type is ErrInvalidParam.
func (t SolverType) MarshalText() ([]byte, error) {
	if int(t) >= len(solverNames) {
		return nil, status.Errorf(status.ErrInvalidParam, "want a solver type of 0 to %d, got %d", SolverTypes-1, t)
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what ParseSolverType reads.
func (t *SolverType) UnmarshalText(text []byte) error {
	got, err := ParseSolverType(string(text))
	if err == nil {
		*t = got
	}
	return err
}
