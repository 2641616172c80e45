package llama

import (
	"slices"
	"strconv"

	"goatb/atb"
)

// Matrix is a matrix of a model on its device that rows are multiplied with.
type Matrix struct {
	// Name is that of the input of a step's graph.
	Name string
	// Rows and Cols are its size, [out, in].
	Rows, Cols int64
	// Weights is its format, which may differ from the model's; see Int4.
	Weights WeightFormat
	// Tensors holds the matrix, packed under native checks, and the f32 scales of
	// Int8.
	Tensors []atb.Tensor
}

// Matrices lists the matrices that each step reads: those of the layers, in order,
// and the classifier. They are the model's memory: not to be freed or written.
func (m *Model) Matrices() []Matrix {
	if m == nil {
		return nil
	}
	var list []Matrix
	add := func(name string, x *matrix) {
		if len(x.tensors) > 0 {
			list = append(list, Matrix{name, x.rows, x.cols, x.Weights, slices.Clone(x.tensors)})
		}
	}
	for i := range m.layers {
		for j := range m.layers[i].matrices {
			add(matrixNames[j]+strconv.Itoa(i), &m.layers[i].matrices[j])
		}
	}
	add("classifier", &m.classifier)
	return list
}

// CacheBytes returns the size of the keys and values that a session has room for.
func (s *Session) CacheBytes() int64 {
	if s == nil {
		return 0
	}
	return s.memory.bytes()
}
