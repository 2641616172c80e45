// Package atb is what users of GoATB import: the names of the library's
// programming model. It has no logic of its own.
//
// An operation is made from its parameters, planned for the tensors at hand and
// enqueued on the stream of a context:
//
//	op, err := atb.New(norm.RMS(norm.Plain, 1e-5))
//	size, err := op.Setup(pack, c)          // shapes, kernels, workspace
//	ws, err := c.Workspace(size)            // or the caller's own buffer
//	err = op.Execute(pack, ws, c)           // enqueues, does not wait
//	err = c.Synchronize(ctx)                // waits, returns the first error
//
// A graph is an operation too, made from names:
//
//	op, err := atb.BuildGraph("mlp", []string{"x", "w", "b"}, []string{"y"}).
//		AddSpec(linear.DefaultLinear(), []string{"x", "w", "b"}, []string{"h"}).
//		AddSpec(activation.Of(activation.SwiGLUForward), []string{"h"}, []string{"y"}).
//		Build()
//
// InferShape gives the outputs' descriptors for NewTensor. An Op that needs
// other shapes is set up again with them.
//
// The parameters live in the packages below goatb/operation, one for each
// family. The methods of Context are documented at goatb/context.Context, those
// of Op and GraphBuilder at goatb/operation.
package atb

import (
	"context"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
	"goatb/tiling/sink/compiled"
)

// The types of the programming model.
type (
	// Context is where operations run: device, streams, rings, caches.
	Context = atbctx.Context
	// Option changes how a Context is made.
	Option = atbctx.Option
	// Config is a Context's configuration.
	Config = atbctx.Config
	// Stats is a snapshot of a Context's counters.
	Stats = atbctx.Stats
	// Op is an operation.
	Op = operation.Op
	// Operation is what graphs are made of; users' own types may implement it.
	Operation = operation.Operation
	// Streamer is what users' operations implement to run on streams of their
	// choice inside a graph.
	Streamer = operation.Streamer
	// Spec is what a parameter struct implements to be an operation.
	Spec = operation.Spec
	// VariantPack holds the tensors of one call.
	VariantPack = operation.VariantPack
	// GraphParam describes a graph by tensor ids.
	GraphParam = operation.GraphParam
	// GraphBuilder builds a graph from names.
	GraphBuilder = operation.GraphBuilder
	// Node is a node of a GraphParam.
	Node = operation.Node
	// Chunk is one of several equal parts of a tensor.
	Chunk = operation.Chunk
	// Event records or waits for a device event.
	Event = operation.Event
	// If is one of two operations, chosen at every Setup.
	If = operation.If
	// Compiler captures operations for policy device-sink ahead of time.
	Compiler = operation.Compiler
	// CompileOptions say how.
	CompileOptions = operation.CompileOptions
	// Compiled is what a Compiler has made: Encode gives its bytes.
	Compiled = compiled.File
	// Tensor is a descriptor with device data, host data, or both.
	Tensor = device.Tensor
	// Buffer is a window of device memory.
	Buffer = device.Buffer
	// Desc describes a tensor, Shape is its dimensions.
	Desc  = tensor.Desc
	Shape = tensor.Shape
	// DType is an element type, Format a layout.
	DType  = tensor.DType
	Format = tensor.Format
	// Status is an error code; OpError is the error of every call.
	Status  = status.Code
	OpError = status.OpError
)

// Actions of an Event.
const (
	EventRecord = operation.EventRecord
	EventWait   = operation.EventWait
)

// Absent is the tensor id of an optional operand that is not there.
const Absent = operation.Absent

// Element types; package tensor has the rarer ones.
const (
	Float32  = tensor.Float32
	Float16  = tensor.Float16
	BFloat16 = tensor.BFloat16
	Int8     = tensor.Int8
	Int32    = tensor.Int32
	Int64    = tensor.Int64
	Uint32   = tensor.Uint32
	Bool     = tensor.Bool
)

// Layouts.
const (
	ND        = tensor.ND
	FractalNZ = tensor.FractalNZ
)

// Of makes a row-major descriptor.
func Of(t DType, dims ...int64) Desc { return tensor.Of(t, dims...) }

// ShapeOf makes a shape.
func ShapeOf(dims ...int64) Shape { return tensor.ShapeOf(dims...) }

// NewContext makes a context on a device.
func NewContext(dev device.Device, opts ...Option) (*Context, error) { return atbctx.New(dev, opts...) }

// New makes an operation from its parameters.
func New(s Spec) (*Op, error) { return operation.New(s) }

// NewGraph makes a graph operation from tensor ids.
func NewGraph(p GraphParam) (*Op, error) { return operation.NewGraph(p) }

// BuildGraph starts a graph with named inputs and outputs.
func BuildGraph(name string, in, out []string) *GraphBuilder {
	return operation.BuildGraph(name, in, out)
}

// NewCompiler makes a compiler for the SoC, the form and the machine of a context.
func NewCompiler(c *Context, o CompileOptions) (*Compiler, error) {
	return operation.NewCompiler(c, o)
}

// DecodeCompiled reads the bytes of a compilation, for WithCompiled.
func DecodeCompiled(data []byte) (*Compiled, error) { return compiled.Decode(data) }

// NewTensor reserves device memory for a tensor, zero filled.
func NewTensor(c *Context, d Desc) (Tensor, error) { return atbctx.NewTensor(c, d) }

// FromSlice makes a device tensor with a copy of data.
func FromSlice[T device.Element](c *Context, data []T, dims ...int64) (Tensor, error) {
	return atbctx.FromSlice(c, data, dims...)
}

// FromFloats makes a tensor of any float type from float32 values.
func FromFloats(c *Context, t DType, data []float32, dims ...int64) (Tensor, error) {
	return atbctx.FromFloats(c, t, data, dims...)
}

// Wrap makes a device tensor over memory that the caller owns, without a copy.
func Wrap[T device.Element](data []T, dims ...int64) (Tensor, error) {
	return atbctx.Wrap(data, dims...)
}

// Host makes a host tensor: values that operations read on the host, such as
// sequence lengths. It has no device memory; FromSlice makes the tensors that
// kernels read.
func Host[T device.Element](data []T, dims ...int64) Tensor { return atbctx.Host(data, dims...) }

// Write copies bytes into a device tensor and waits for the copy.
func Write(ctx context.Context, c *Context, t *Tensor, data []byte) error {
	return atbctx.Write(ctx, c, t, data)
}

// Read copies a device tensor's bytes into data and waits for the copy.
func Read(ctx context.Context, c *Context, data []byte, t *Tensor) error {
	return atbctx.Read(ctx, c, data, t)
}

// ToSlice returns a copy of a device tensor's elements.
func ToSlice[T device.Element](ctx context.Context, c *Context, t Tensor) ([]T, error) {
	return atbctx.ToSlice[T](ctx, c, t)
}

// ToFloats returns a float tensor's elements as float32.
func ToFloats(ctx context.Context, c *Context, t Tensor) ([]float32, error) {
	return atbctx.ToFloats(ctx, c, t)
}
