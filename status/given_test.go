package status_test

import (
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"

	"goatb/status"
)

func TestGivenNamesTheFirstNil(t *testing.T) {
	var file *os.File
	var none io.Reader
	var f func()
	err := status.Given("read", "buffer", []byte{1}, "file", io.Reader(file), "f", f)
	assert.EqualError(t, err, "read: want argument file, got nil (ERROR_INVALID_PARAM)")
	assert.ErrorIs(t, err, status.ErrInvalidParam)
	assert.NoError(t, status.Given("read", "buffer", []byte{}, "n", 0, "file", os.Stdin))
	assert.NoError(t, status.Given("read"))
	for _, v := range []any{none, file, io.Reader(file), f, map[int]int(nil), chan int(nil), []int(nil), (*int)(nil)} {
		assert.True(t, status.IsNil(v), "%T", v)
	}
	for _, v := range []any{0, "", struct{}{}, []int{}, new(int), func() {}} {
		assert.False(t, status.IsNil(v), "%T", v)
	}
}

func TestUnmade(t *testing.T) {
	assert.EqualError(t, status.Unmade(status.ErrInvalidStream, "Stream", true, "make one with NewStream"),
		"the stream is nil: make one with NewStream (ERROR_INVALID_STREAM)")
	assert.EqualError(t, status.Unmade(status.ErrInvalidParam, "Event", false, "make one with NewEvent"),
		"the event is a zero Event: make one with NewEvent (ERROR_INVALID_PARAM)")
}

func TestNilOpError(t *testing.T) {
	var e *status.OpError
	assert.Equal(t, "NO_ERROR", e.Error())
	assert.NoError(t, e.Unwrap())
	assert.Nil(t, e.On("x"))
	assert.Nil(t, e.Or(status.ErrInvalidParam))
	assert.False(t, e.Is(status.ErrInvalidParam))
}
