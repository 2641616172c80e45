package llama

import (
	"fmt"
	"strings"

	"goatb/atb"
	"goatb/kernel/matmul"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/shape"
	"goatb/tensor"
)

// WeightFormat says how the matrices that rows are multiplied with are stored.
type WeightFormat uint8

// Formats of matrices.
const (
	// AsActivations stores them in the type of the activations.
	AsActivations WeightFormat = iota
	// Int8 has one f32 scale for each row of a matrix, [out, in]. Activations are
	// rounded to int8 by the largest element of their row before a product, whose
	// sums are exact.
	Int8
	// Int4 has one f16 scale for 32 neighbours in a row of a matrix, 4.5 bits a
	// weight. A matrix whose rows are no whole groups keeps the type of the
	// activations.
	Int4
)

// int4Group is the number of elements with one scale.
const int4Group = 32

var weightFormats = [...]string{"", "int8", "int4"}

// ParseWeightFormat reads "int8", "int4" or "", which is AsActivations.
func ParseWeightFormat(s string) (WeightFormat, error) {
	for i, name := range weightFormats {
		if s == name {
			return WeightFormat(i), nil
		}
	}
	return 0, fmt.Errorf("want a weight format of %s, or none, got %q", strings.Join(weightFormats[1:], ", "), s)
}

// String names the format, with "" for AsActivations.
func (f WeightFormat) String() string {
	if int(f) >= len(weightFormats) {
		return fmt.Sprintf("WeightFormat(%d)", uint8(f))
	}
	return weightFormats[f]
}

// Format says how a model lies on a device.
type Format struct {
	// DType is the type of activations, norms and caches: f32, f16 or bf16.
	DType atb.DType
	// Weights is the format of matrices. Int8 and Int4 want a context of native
	// checks.
	Weights WeightFormat
}

func (f Format) validate(checks string) error {
	switch f.DType {
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
	default:
		return fmt.Errorf("upload: want activations of f32, f16 or bf16, got %s", f.DType)
	}
	if int(f.Weights) >= len(weightFormats) {
		return fmt.Errorf("upload: want a format of weights of 0 to %d, got %d", len(weightFormats)-1, f.Weights)
	}
	if f.Weights != AsActivations && checks != native {
		return fmt.Errorf("upload: weights of %s want %s checks, got %s", f.Weights, native, checks)
	}
	return nil
}

// native are the checks that know packed weights.
const native = "native"

// layout is how one matrix [rows, cols] is stored.
type layout struct {
	Format
	rows, cols int64
	packed     bool
}

// layoutOf says how a matrix is stored under some checks.
func (f Format) layoutOf(rows, cols int, checks string) layout {
	if f.Weights == Int4 && cols%int4Group != 0 {
		f.Weights = AsActivations
	}
	return layout{f, int64(rows), int64(cols), checks == native}
}

// descs are the tensors that it is stored in: one, or two with scales.
func (l layout) descs() ([]tensor.Desc, error) {
	d := tensor.Of(l.DType, l.rows, l.cols)
	if l.packed {
		d.Format = tensor.Panels
	}
	switch l.Weights {
	case Int8:
		d.DType = tensor.Int8
		return []tensor.Desc{d, tensor.Of(tensor.Float32, l.rows)}, nil
	case Int4:
		panels, err := matmul.Int4Panels(matmul.Int4Params{Columns: l.rows}, l.cols, l.cols/int4Group, tensor.Float16)
		return []tensor.Desc{panels}, err
	}
	return []tensor.Desc{d}, nil
}

// names are the inputs of a graph that hold a matrix: the name, and its scales.
func (l layout) names(name string) []string {
	if l.Weights == Int8 {
		return []string{name, name + "_scale"}
	}
	return []string{name}
}

// products adds products with matrices to a graph.
type products struct {
	b *atb.GraphBuilder
	// rounded are the activations that are there in int8.
	rounded map[string]bool
}

func productsOf(b *atb.GraphBuilder) products { return products{b, map[string]bool{}} }

// add adds y = x times the matrix called w.
func (p products) add(l layout, x, w, y string) {
	switch l.Weights {
	case Int8:
		if !p.rounded[x] {
			p.rounded[x] = true
			p.b.AddSpec(elementwise.Of(elementwise.DynamicQuant), []string{x}, []string{x + "_int8", x + "_factor"})
		}
		s := project()
		s.OutDataType, s.QuantMode = l.DType, linear.QuantPerToken
		p.b.AddSpec(s, []string{x + "_int8", w, w + "_scale", x + "_factor"}, []string{y})
	case Int4:
		p.b.AddSpec(linear.Int4Linear{Columns: l.rows}, []string{x, w}, []string{y})
	default:
		p.b.AddSpec(project(), []string{x, w}, []string{y})
	}
}

// addRows adds the rows of a matrix that ids choose.
func (l layout) addRows(b *atb.GraphBuilder, w, ids, x string) {
	if !l.packed {
		b.AddSpec(shape.DefaultGather(), []string{w, ids}, []string{x})
		return
	}
	var s linear.PackedRows
	if l.Weights != AsActivations {
		s.OutDataType = l.DType
	}
	if l.Weights == Int4 {
		s.Columns = l.rows
	}
	in := l.names(w)
	b.AddSpec(s, append([]string{w, ids}, in[1:]...), []string{x})
}

// project is x times a [out, in] matrix, without bias.
func project() linear.Linear {
	p := linear.DefaultLinear()
	p.HasBias = false
	return p
}
