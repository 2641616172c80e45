// Package tensor describes tensors: element types, layouts, shapes and the
// descriptor that joins them, the half-precision number types, conversions
// between element types and between layouts, and the safetensors file format.
// It knows nothing of devices; a descriptor has no data.
package tensor
