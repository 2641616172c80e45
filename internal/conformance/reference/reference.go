// Package reference computes operations in float64, straight from their
// formulas: the yardstick for rows without a golden result. It shares no code
// with the kernels and reads parameters from their JSON on its own.
//
// Where an operation's rule rounds on the way (a half-precision rotation, a
// product before a half-precision bias), the reference rounds there too.
package reference

import (
	"encoding/json"
	"errors"
	"fmt"

	"goatb/tensor"
)

// Tensor is a tensor in host memory.
type Tensor struct {
	Desc tensor.Desc
	// Data holds the elements, row-major and little-endian, 8-byte aligned.
	Data []byte
}

// ErrNone means that there is no reference for an operation or a variant.
var ErrNone = errors.New("no float64 reference")

// Input is an operation call.
type Input struct {
	// Op is the operation's type and Param its JSON parameters.
	Op    string
	Param []byte
	// In holds the inputs, an empty descriptor for an absent one. Out describes
	// the outputs.
	In  []Tensor
	Out []tensor.Desc
}

// Eval returns the expected outputs: with the output's own type where the
// result is exact, in float64 where it is computed, before the last rounding.
func Eval(c *Input) (out []Tensor, err error) {
	f, ok := functions[c.Op]
	if !ok {
		return nil, fmt.Errorf("%s: %w", c.Op, ErrNone)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("reference of %s failed on these operands: %v", c.Op, r)
		}
	}()
	return f(c)
}

// functions maps an operation's type to its reference.
var functions = map[string]func(c *Input) ([]Tensor, error){
	"ActivationOperation":      activation,
	"ConcatOperation":          concat,
	"ElewiseOperation":         elewise,
	"GatherOperation":          gather,
	"IndexAddOperation":        indexAdd,
	"LinearOperation":          linear,
	"PagedAttentionOperation":  pagedAttention,
	"ReshapeAndCacheOperation": reshapeAndCache,
	"RmsNormOperation":         rmsNorm,
	"RopeOperation":            rope,
	"SelfAttentionOperation":   selfAttention,
	"SliceOperation":           slice,
	"SoftmaxOperation":         softmax,
	"SortOperation":            sortRows,
	"SplitOperation":           split,
	"TransposeOperation":       transpose,
}

// params decodes the JSON parameters over defaults.
func params[P any](c *Input, p P) (P, error) {
	if len(c.Param) == 0 {
		return p, nil
	}
	err := json.Unmarshal(c.Param, &p)
	return p, err
}
