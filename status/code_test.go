package status

import (
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
)

// atbCodes are ATB's status codes in the order of their numbers.
var atbCodes = []struct {
	code Code
	name string
}{
	{OK, "NO_ERROR"},
	{ErrInvalidParam, "ERROR_INVALID_PARAM"},
	{ErrInvalidGraph, "ERROR_INVALID_GRAPH"},
	{ErrInternal, "ERROR_INTERNAL_ERROR"},
	{ErrRuntimeFail, "ERROR_RT_FAIL"},
	{ErrInvalidInTensorNum, "ERROR_INVALID_IN_TENSOR_NUM"},
	{ErrInvalidTensorDType, "ERROR_INVALID_TENSOR_DTYPE"},
	{ErrInvalidTensorFormat, "ERROR_INVALID_TENSOR_FORMAT"},
	{ErrInvalidTensorDim, "ERROR_INVALID_TENSOR_DIM"},
	{ErrInvalidTensorSize, "ERROR_INVALID_TENSOR_SIZE"},
	{ErrNullRunner, "ERROR_OPERATION_NULL_RUNNER"},
	{ErrGraphInferShapeFail, "ERROR_GRAPH_INFERSHAPE_FUNC_FAIL"},
	{ErrDeviceFail, "ERROR_CANN_ERROR"},
	{ErrInvalidTensorIniMatch, "ERROR_INVALID_TENSOR_INI_MATCH"},
	{ErrInvalidTensorAddr, "ERROR_INVALID_TENSOR_ADDR"},
	{ErrInvalidTensorNum, "ERROR_INVALID_TENSOR_NUM"},
	{ErrInvalidTensorDimNum, "ERROR_INVALID_TENSOR_DIM_NUM"},
	{ErrInvalidSingleOperationParam, "ERROR_INVALID_SINGLE_OPERATION_PARAM"},
	{ErrGraphNodeReshapeFail, "ERROR_GRAPH_NODE_RESHAPE_FUNC_FAIL"},
	{ErrInvalidGraphNodeChunk, "ERROR_INVALID_GRAPH_NODE_CHUNK"},
	{ErrInvalidContextAddr, "ERROR_INVALID_CONTEXT_ADDR"},
	{ErrInvalidStream, "ERROR_INVALID_STREAM"},
	{ErrInvalidWorkspaceSize, "ERROR_INVALID_WORKSPACE_SIZE"},
	{ErrInvalidWorkspaceAddr, "ERROR_INVALID_WORKSPACE_ADDR"},
	{ErrInvalidOperationAddr, "ERROR_INVALID_OPERATION_ADDR"},
	{ErrHCCLFail, "ERROR_HCCL_FAIL"},
	{ErrOutOfDeviceMemory, "ERROR_OUT_OF_DEVICE_MEMORY"},
	{ErrOutOfHostMemory, "ERROR_OUT_OF_HOST_MEMORY"},
	{ErrCommEmpty, "ERROR_COMM_EMPTY"},
	{ErrCopyHostMemoryFail, "ERROR_COPY_HOST_MEMORY_FAIL"},
}

func TestCodes(t *testing.T) {
	require.Len(t, atbCodes, 30)
	require.Equal(t, 30, Count)
	for number, c := range atbCodes {
		assert.Equal(t, Code(number), c.code, c.name)
		assert.Equal(t, c.name, c.code.String())
		assert.Equal(t, c.name, c.code.Error())
		got, ok := Parse(c.name)
		assert.True(t, ok, c.name)
		assert.Equal(t, c.code, got)
	}
}

func TestCodesAreThoseOfTheSpecification(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "spec", "runtime.md"))
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ((?:NO_ERROR|ERROR_[A-Z_]+)) \|`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, Count)
	for _, row := range rows {
		number, err := strconv.Atoi(row[1])
		require.NoError(t, err)
		assert.Equal(t, row[2], Code(number).String())
	}
}

func TestUnknownCodes(t *testing.T) {
	assert.Equal(t, "status(30)", Code(30).String())
	assert.Equal(t, "status(-1)", Code(-1).Error())
	for _, name := range []string{"", "ERROR", "error_invalid_param", "status(30)"} {
		_, ok := Parse(name)
		assert.False(t, ok, name)
	}
}
