package conformance

import (
	"encoding/json"

	"goatb/internal/conformance/reference"
	"goatb/tensor"
)

// class is a comparison class of ATB's tests.
type class string

// Classes that the operations here use.
const (
	classMove           class = "MOVE"
	classCast           class = "CAST"
	classInteger        class = "COMPUTE_INTEGER"
	classFloat          class = "COMPUTE_FLOAT"
	classQuant          class = "COMPUTE_QUANT"
	classVectorFusion   class = "VECTOR_FUSION"
	classAttentionStyle class = "CV_FUSION"
)

// classParam holds the parameters that choose a class.
type classParam struct {
	ElewiseType, ActivationType, LayerType int
	TransposeA                             bool
	NormParam, PreNormParam, PostNormParam struct{ QuantType int }
}

// classOf returns the class of a call and the length of its sums, which only
// linear operations have.
func classOf(c *reference.Input) (class, int64) {
	var p classParam
	if len(c.Param) > 0 && json.Unmarshal(c.Param, &p) != nil {
		return classMove, 0
	}
	switch c.Op {
	case "LinearOperation":
		k := -1
		if p.TransposeA {
			k = -2
		}
		return classFloat, c.In[0].Desc.Dim(k)
	case "ElewiseOperation":
		return elewiseClass(p.ElewiseType), 0
	case "ActivationOperation":
		switch p.ActivationType {
		case 4, 6, 7, 8:
			return classVectorFusion, 0
		}
		return classFloat, 0
	case "RmsNormOperation":
		quant := map[int]int{1: p.NormParam.QuantType, 2: p.PreNormParam.QuantType, 3: p.PostNormParam.QuantType}[p.LayerType]
		if quant != 0 {
			return classQuant, 0
		}
		return classVectorFusion, 0
	case "RopeOperation", "SoftmaxOperation", "IndexAddOperation":
		return classFloat, 0
	case "SelfAttentionOperation", "PagedAttentionOperation":
		return classAttentionStyle, 0
	case "TransposeOperation":
		return classCast, 0
	}
	return classMove, 0
}

func elewiseClass(kind int) class {
	switch kind {
	case 1:
		return classCast
	case 6, 17, 18, 19, 20:
		return classQuant
	case 7, 11, 12, 13, 14, 16:
		return classInteger
	}
	return classFloat
}

// tolerance returns T for an output of type t.
func (c class) tolerance(t tensor.DType, sum int64) float64 {
	switch c {
	case classFloat, classQuant:
		if t == tensor.Int8 && c == classQuant {
			return 1
		}
		return floatTolerance(t, sum)
	case classVectorFusion, classAttentionStyle:
		switch t {
		case tensor.Float16:
			return 0x1p-9
		case tensor.BFloat16:
			return 0x1p-7
		case tensor.Float32:
			return 0x1p-12
		}
	}
	return 0
}

func floatTolerance(t tensor.DType, sum int64) float64 {
	wider := 1.0
	if sum >= 2048 {
		wider = 2
	}
	switch t {
	case tensor.Float16:
		return 0x1p-8 * wider
	case tensor.BFloat16:
		return 0x1p-7 * wider
	case tensor.Float32:
		if sum >= 16384 {
			wider = 4
		}
		return 0x1p-11 * wider
	}
	return 0
}
