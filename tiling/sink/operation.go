package sink

import (
	"goatb/kernel"
	"goatb/status"
)

// Op is one operation of a graph, as far as tiling on the device asks.
type Op struct {
	// ID is the operation's id in its graph, Type what functions are registered
	// under, Name its place.
	ID         int64
	Type, Name string
	// Stream is the id of its main stream.
	Stream int
	// Inputs are the connected inputs in order.
	Inputs []Input
	// HostOnly says why the node is no kernel, so that the host does it between
	// captured segments; "" for kernels.
	HostOnly string
	// Unknown says that some shape is not known before the graph runs.
	Unknown bool
	// Registration is what the operation's kernel declares, nil for none.
	Registration *Registration
	// CompileInfo is what the host compiled for the tiling function; it must not
	// be empty where the operation is sunk.
	CompileInfo string
	// FixedAddresses says that the operation's addresses cannot be refreshed.
	FixedAddresses bool
	// NeverTimeout says that its kernel may run for ever.
	NeverTimeout bool
	// NoAttached says that a branch of control flow forbids attached resources.
	NoAttached bool
	// Custom says that the kernel does not come with the library, and Package is
	// the path prefix of the package that it comes with.
	Custom  bool
	Package string
	// Fusion is what super kernels ask.
	Fusion Fusion
}

// Input is a connected input of an operation.
type Input struct {
	// Declared is the index of the declared input; the tensors of a dynamic input
	// share one.
	Declared int
	// Const says that the value is known when the graph is compiled.
	Const bool
	// Producer is the index in the graph's list of the operation that makes the
	// input, Outside for data that the caller passes in and constants.
	Producer int
}

// Outside is the Producer of an input that no operation of the graph makes.
const Outside = -1

// Registration is what a kernel declares about its tiling, all at once: so that
// the place of a tiling and the function that runs there cannot disagree.
type Registration struct {
	// Depends is the set of declared inputs whose values the tiling reads, bit i
	// for input i.
	Depends uint64
	// TileOn says where the tiling function may run.
	TileOn kernel.Placement
	// Function is the name under which the device finds the tiling function.
	Function string
}

// maxDeclared is the number of declared inputs that Registration.Depends tells
// apart.
const maxDeclared = 64

// Depending makes a set of declared inputs. An input outside 0..63 is
// ErrInvalidParam.
func Depending(inputs ...int) (uint64, error) {
	var set uint64
	for _, i := range inputs {
		if i < 0 || i >= maxDeclared {
			return 0, status.Errorf(status.ErrInvalidParam, "tiling depends on the value of input %d: want an input from 0 to %d", i, maxDeclared-1)
		}
		set |= 1 << i
	}
	return set, nil
}

// RegistrationOf is the registration of a kernel with `operands` inputs that it
// computes on, and `values` inputs behind them whose values its tiling reads.
// Errors as Depending.
func RegistrationOf(k *kernel.Kernel, operands, values int) (*Registration, error) {
	r := &Registration{TileOn: k.TileOn()}
	if r.TileOn.Has(kernel.OnAICPU) {
		r.Function = k.Name()
	}
	for i := range values {
		bit, err := Depending(operands + i)
		if err != nil {
			return nil, err
		}
		r.Depends |= bit
	}
	return r, nil
}

// depends reports whether the tiling reads the value of an input.
func (o *Op) depends(in *Input) bool {
	return o.Registration != nil && in.Declared >= 0 && in.Declared < maxDeclared && o.Registration.Depends>>in.Declared&1 == 1
}

// custom reports whether the kernel comes from elsewhere than the library.
func (o *Op) custom() bool { return o.Custom || o.Package != "" }

// fail is an error of a stage that names the operation.
func (o *Op) fail(code status.Code, stage, format string, args ...any) error {
	return status.Place(status.Errorf(code, format, args...), code, o.Type, stage, o.Name)
}
