package status

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorText(t *testing.T) {
	what := errors.New("want [4096], got [2048]")
	for _, tt := range []struct {
		err  OpError
		want string
	}{
		{
			OpError{Code: ErrInvalidTensorDim, Op: "rmsnorm", Stage: "setup", Node: "node 3", Tensor: "input 1 (gamma)", Err: what},
			"rmsnorm: setup: node 3: input 1 (gamma): want [4096], got [2048] (ERROR_INVALID_TENSOR_DIM)",
		},
		{
			OpError{Code: ErrInvalidTensorDim, Op: "rmsnorm", Tensor: "input 1 (gamma)", Err: what},
			"rmsnorm: input 1 (gamma): want [4096], got [2048] (ERROR_INVALID_TENSOR_DIM)",
		},
		{OpError{Code: ErrHCCLFail, Err: what}, "want [4096], got [2048] (ERROR_HCCL_FAIL)"},
		{OpError{Code: ErrCommEmpty, Stage: "create"}, "create: ERROR_COMM_EMPTY"},
		{OpError{Code: 77}, "status(77)"},
	} {
		assert.Equal(t, tt.want, tt.err.Error())
	}
}

func TestErrorf(t *testing.T) {
	err := Errorf(ErrInvalidParam, "read %d of %d: %w", 3, 4, io.ErrUnexpectedEOF)
	assert.Equal(t, "read 3 of 4: unexpected EOF (ERROR_INVALID_PARAM)", err.Error())
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Equal(t, OpError{Code: ErrInvalidParam, Err: err.Err}, *err)
}

// alsoParam are the codes that ATB reports as a plain invalid parameter.
var alsoParam = map[Code]bool{
	ErrInvalidTensorAddr: true, ErrGraphNodeReshapeFail: true, ErrInvalidGraphNodeChunk: true, ErrInvalidContextAddr: true,
	ErrInvalidStream: true, ErrInvalidWorkspaceSize: true, ErrInvalidWorkspaceAddr: true, ErrInvalidOperationAddr: true,
}

func TestIsAcceptsTheCodeAndWhatItStandsFor(t *testing.T) {
	for code := Code(1); code < Code(Count); code++ {
		var err error = fmt.Errorf("outer: %w", Errorf(code, "inner"))
		for target := range Code(Count) {
			want := target == code || target == ErrInvalidParam && alsoParam[code]
			assert.Equal(t, want, errors.Is(err, target), "%s is %s", code, target)
		}
		assert.NotErrorIs(t, err, io.EOF)
	}
}

func TestOrAddsOneCode(t *testing.T) {
	err := Errorf(ErrInvalidTensorDim, "what")
	require.NotErrorIs(t, err, ErrInvalidTensorDimNum)
	require.Same(t, err, err.Or(ErrInvalidTensorDimNum))
	for target := range Code(Count) {
		want := target == ErrInvalidTensorDim || target == ErrInvalidTensorDimNum
		assert.Equal(t, want, errors.Is(err, target), target)
	}
	assert.Equal(t, ErrInvalidTensorDim, CodeOf(err))
}

func TestOnNamesTheTensorOnce(t *testing.T) {
	err := Errorf(ErrInvalidTensorDim, "what")
	require.Same(t, err, err.On("input 0 (x)"))
	assert.Equal(t, "input 0 (x)", err.On("output 0").Tensor)
}

func TestAsFindsThePlace(t *testing.T) {
	inner := &OpError{Code: ErrInvalidTensorAddr, Op: "linear", Tensor: "input 2", Err: io.EOF}
	e, ok := errors.AsType[*OpError](errors.Join(io.ErrClosedPipe, fmt.Errorf("outer: %w", inner)))
	require.True(t, ok)
	assert.Same(t, inner, e)
	assert.ErrorIs(t, e, io.EOF)
}

func TestPlaceFillsEmptyFieldsOfACopy(t *testing.T) {
	first := Errorf(ErrInvalidTensorDim, "what").On("input 0").Or(ErrInvalidParam)
	placed := Place(Place(first, ErrInternal, "linear", "", "node 1"), ErrInternal, "graph", "setup", "node 9")
	assert.Equal(t, &OpError{
		Code: ErrInvalidTensorDim, Also: ErrInvalidParam, Op: "linear", Stage: "setup", Node: "node 1", Tensor: "input 0", Err: first.Err,
	}, placed)
	assert.Empty(t, first.Op, "the argument must stay as it was")
}

func TestPlaceWrapsOtherErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want Code
	}{
		{"foreign", io.EOF, ErrRuntimeFail},
		{"wrapped OpError", fmt.Errorf("outer: %w", Errorf(ErrInvalidStream, "what")), ErrInvalidStream},
		{"code", ErrHCCLFail, ErrHCCLFail},
		{"wrapped code", fmt.Errorf("outer: %w", ErrHCCLFail), ErrHCCLFail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			placed := Place(tt.err, ErrRuntimeFail, "linear", "execute", "node 1")
			assert.Equal(t, &OpError{Code: tt.want, Op: "linear", Stage: "execute", Node: "node 1", Err: tt.err}, placed)
			assert.ErrorIs(t, placed, tt.err)
			assert.ErrorIs(t, placed, tt.want)
		})
	}
}

func TestPlaceKeepsNil(t *testing.T) {
	assert.NoError(t, Place(nil, ErrInternal, "op", "stage", "node"))
	var none *OpError
	assert.NoError(t, Place(none, ErrInternal, "op", "stage", "node"))
}

func TestCodeOf(t *testing.T) {
	var none *OpError
	for _, tt := range []struct {
		name string
		err  error
		want Code
	}{
		{"nil", nil, OK},
		{"nil OpError", none, OK},
		{"OpError", Errorf(ErrNullRunner, "what"), ErrNullRunner},
		{"wrapped OpError", fmt.Errorf("outer: %w", Errorf(ErrNullRunner, "what")), ErrNullRunner},
		{"outermost OpError", &OpError{Code: ErrInternal, Err: Errorf(ErrNullRunner, "what")}, ErrInternal},
		{"code", ErrDeviceFail, ErrDeviceFail},
		{"wrapped code", fmt.Errorf("outer: %w", ErrDeviceFail), ErrDeviceFail},
		{"joined", errors.Join(io.EOF, ErrDeviceFail), ErrDeviceFail},
		{"foreign", io.EOF, ErrInternal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, CodeOf(tt.err))
		})
	}
}
