package gemm

// Dequant turns n sums of an int8 product into floats:
//
//	dst[i] = float32(sums[i] - less[i]) * scale[i] * factor
//
// with a rounding at each of the three steps. dst may be sums.
type Dequant func(n int, dst *float32, sums, less *int32, scale *float32, factor float32)
