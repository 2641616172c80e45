// Package catalog makes operations from their name and JSON parameters: for the
// command line, graphs in JSON and conformance runs. A program that imports it
// links every operation.
package catalog

import (
	"slices"

	"goatb/internal/spelling"
	"goatb/operation"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/rope"
	"goatb/operation/shape"
	"goatb/status"
)

// decoder reads an operation's parameters.
type decoder func(param []byte) (operation.Spec, error)

// of makes a decoder over defaults with the keys that must be there.
func of[P operation.Spec](def func() P, required ...string) decoder {
	return func(param []byte) (operation.Spec, error) {
		return operation.Decode(param, def(), required...)
	}
}

// decoders holds the operations by type.
var decoders = map[string]decoder{
	"ActivationOperation":      of(activation.DefaultActivation),
	"ConcatOperation":          of(shape.DefaultConcat),
	"ElewiseOperation":         of(elementwise.DefaultElewise, "elewiseType"),
	"GatherOperation":          of(shape.DefaultGather),
	"IndexAddOperation":        of(shape.DefaultIndexAdd, "indexType"),
	"LinearOperation":          of(linear.DefaultLinear),
	"PagedAttentionOperation":  of(attention.DefaultPagedAttention, "headNum", "qkScale", "kvHeadNum"),
	"ReshapeAndCacheOperation": of(cache.DefaultReshapeAndCache),
	"RmsNormOperation":         of(norm.DefaultRMSNorm),
	"RopeOperation":            of(rope.DefaultRope),
	"SelfAttentionOperation":   of(attention.DefaultSelfAttention),
	"SliceOperation":           of(shape.DefaultSlice, "offsets", "size"),
	"SoftmaxOperation":         of(shape.DefaultSoftmax, "axes"),
	"SortOperation":            of(shape.DefaultSort, "num"),
	"SplitOperation":           of(shape.DefaultSplit),
	"TransposeOperation":       of(shape.DefaultTranspose, "perm"),
}

// Names returns the types of all operations, sorted.
func Names() []string {
	names := make([]string, 0, len(decoders))
	for name := range decoders {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Known lists all operations for an error about a name, the nearest first.
func Known(name string) string { return spelling.List(name, Names()) }

// Has reports whether there is an operation of a type.
func Has(name string) bool { return decoders[name] != nil }

// New decodes the JSON parameters of an operation type, such as
// "SoftmaxOperation"; no bytes at all stand for an empty object. Errors:
// ErrInvalidParam for an unknown type and for what operation.Decode refuses,
// with the type's name.
func New(name string, param []byte) (operation.Spec, error) {
	decode := decoders[name]
	if decode == nil {
		return nil, status.Place(status.Errorf(status.ErrInvalidParam, "unknown operation %q: want one of %s", name, Known(name)), status.ErrInvalidParam, "", "create", "")
	}
	if len(param) == 0 {
		param = []byte("{}")
	}
	spec, err := decode(param)
	return spec, status.Place(err, status.ErrInvalidParam, name, "create", "")
}
