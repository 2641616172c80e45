// Package status holds the error codes of the operation library and the one
// error type that carries them.
//
// A code is a number with the meaning that Ascend Transformer Boost gives it,
// so programs and test rows that know ATB's numbers keep working. A code is
// also an error value, so errors.Is(err, status.ErrInvalidParam) asks for the
// code and errors.As with *status.OpError asks for the place.
package status

import "strconv"

// Code is the outcome of a call. The zero Code is success and is never
// returned as an error.
type Code int32

// The codes, in ATB's order and with ATB's numbers.
const (
	// OK means success.
	OK Code = iota
	// ErrInvalidParam is a bad argument, a bad parameter or a call in the wrong state.
	ErrInvalidParam
	// ErrInvalidGraph is a graph description that cannot be built.
	ErrInvalidGraph
	// ErrInternal is a broken invariant of the library.
	ErrInternal
	// ErrRuntimeFail is a failed launch or a kernel that reported an error.
	ErrRuntimeFail
	// ErrInvalidInTensorNum is a wrong number of inputs or outputs at InferShape or Setup.
	ErrInvalidInTensorNum
	// ErrInvalidTensorDType is a dtype that this call does not take.
	ErrInvalidTensorDType
	// ErrInvalidTensorFormat is a layout that this call does not take.
	ErrInvalidTensorFormat
	// ErrInvalidTensorDim is a bad dimension or a rank outside 1..8.
	ErrInvalidTensorDim
	// ErrInvalidTensorSize is a byte size of zero, above 256 GiB, or other than Setup's.
	ErrInvalidTensorSize
	// ErrNullRunner means that no runner could be made.
	ErrNullRunner
	// ErrGraphInferShapeFail is a user's shape function that failed.
	ErrGraphInferShapeFail
	// ErrDeviceFail is a failed call of the device runtime.
	ErrDeviceFail
	// ErrInvalidTensorIniMatch is a dtype and layout tuple outside the operation's table.
	ErrInvalidTensorIniMatch
	// ErrInvalidTensorAddr is a tensor without data.
	ErrInvalidTensorAddr
	// ErrInvalidTensorNum is a wrong number of tensors at Execute.
	ErrInvalidTensorNum
	// ErrInvalidTensorDimNum is a wrong rank.
	ErrInvalidTensorDimNum
	// ErrInvalidSingleOperationParam is a bad parameter of a communication operation.
	ErrInvalidSingleOperationParam
	// ErrGraphNodeReshapeFail is a reshape function that failed or changed the element count.
	ErrGraphNodeReshapeFail
	// ErrInvalidGraphNodeChunk is a chunk that does not divide its tensor or is out of range.
	ErrInvalidGraphNodeChunk
	// ErrInvalidContextAddr is a nil, closed or foreign context.
	ErrInvalidContextAddr
	// ErrInvalidStream is a nil stream or a stream id out of range.
	ErrInvalidStream
	// ErrInvalidWorkspaceSize is a workspace smaller than Setup asked for.
	ErrInvalidWorkspaceSize
	// ErrInvalidWorkspaceAddr is a missing workspace.
	ErrInvalidWorkspaceAddr
	// ErrInvalidOperationAddr is a nil or closed operation.
	ErrInvalidOperationAddr
	// ErrHCCLFail is a failed collective.
	ErrHCCLFail
	// ErrOutOfDeviceMemory means that device memory is exhausted.
	ErrOutOfDeviceMemory
	// ErrOutOfHostMemory means that host memory or a tiling block is exhausted.
	ErrOutOfHostMemory
	// ErrCommEmpty is a missing communicator.
	ErrCommEmpty
	// ErrCopyHostMemoryFail is a failed host copy.
	ErrCopyHostMemoryFail
)

var codeNames = [...]string{
	"NO_ERROR",
	"ERROR_INVALID_PARAM",
	"ERROR_INVALID_GRAPH",
	"ERROR_INTERNAL_ERROR",
	"ERROR_RT_FAIL",
	"ERROR_INVALID_IN_TENSOR_NUM",
	"ERROR_INVALID_TENSOR_DTYPE",
	"ERROR_INVALID_TENSOR_FORMAT",
	"ERROR_INVALID_TENSOR_DIM",
	"ERROR_INVALID_TENSOR_SIZE",
	"ERROR_OPERATION_NULL_RUNNER",
	"ERROR_GRAPH_INFERSHAPE_FUNC_FAIL",
	"ERROR_CANN_ERROR",
	"ERROR_INVALID_TENSOR_INI_MATCH",
	"ERROR_INVALID_TENSOR_ADDR",
	"ERROR_INVALID_TENSOR_NUM",
	"ERROR_INVALID_TENSOR_DIM_NUM",
	"ERROR_INVALID_SINGLE_OPERATION_PARAM",
	"ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL",
	"ERROR_INVALID_GRAPH_NODE_CHUNK",
	"ERROR_INVALID_CONTEXT_ADDR",
	"ERROR_INVALID_STREAM",
	"ERROR_INVALID_WORKSPACE_SIZE",
	"ERROR_INVALID_WORKSPACE_ADDR",
	"ERROR_INVALID_OPERATION_ADDR",
	"ERROR_HCCL_FAIL",
	"ERROR_OUT_OF_DEVICE_MEMORY",
	"ERROR_OUT_OF_HOST_MEMORY",
	"ERROR_COMM_EMPTY",
	"ERROR_COPY_HOST_MEMORY_FAIL",
}

// Count is the number of codes; the codes are 0 to Count-1.
const Count = len(codeNames)

// String returns ATB's name of the code, such as "ERROR_INVALID_PARAM".
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return "status(" + strconv.Itoa(int(c)) + ")"
	}
	return codeNames[c]
}

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return c.String() }

// Parse returns the code with ATB's name, and false when there is none.
func Parse(name string) (Code, bool) {
	for i, n := range codeNames {
		if n == name {
			return Code(i), true
		}
	}
	return OK, false
}

// alsoParam reports the codes that ATB itself reports as a plain invalid
// parameter; an error with such a code matches ErrInvalidParam too.
func (c Code) alsoParam() bool {
	switch c {
	case ErrInvalidTensorAddr, ErrGraphNodeReshapeFail, ErrInvalidGraphNodeChunk, ErrInvalidContextAddr,
		ErrInvalidStream, ErrInvalidWorkspaceSize, ErrInvalidWorkspaceAddr, ErrInvalidOperationAddr:
		return true
	}
	return false
}
