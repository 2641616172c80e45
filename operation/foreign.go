package operation

import (
	"goatb/status"
	"goatb/tensor"
)

// caught makes a panic in a method of a user's own operation the error of the
// call. It is to be deferred.
func caught(err *error, code status.Code, method string, op Operation) {
	if r := recover(); r != nil {
		*err = status.Errorf(code, "%s of %s panicked: %v", method, op.Name(), r)
	}
}

func inferForeign(op Operation, in []tensor.Desc) (out []tensor.Desc, err error) {
	defer caught(&err, status.ErrGraphInferShapeFail, "InferShape", op)
	return op.InferShape(in)
}

func closeNode(op Operation) (err error) {
	defer caught(&err, status.ErrRuntimeFail, "Close", op)
	return op.Close()
}

// streamOf asks a user's own operation which stream it will run on.
func streamOf(op Operation, graph int) (stream int, err error) {
	s, ok := op.(Streamer)
	if !ok {
		return graph, nil
	}
	defer caught(&err, status.ErrInvalidParam, "OnStream", op)
	stream = s.OnStream(graph)
	return stream, checkStream(stream)
}
