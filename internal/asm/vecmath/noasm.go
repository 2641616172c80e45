//go:build noasm || !amd64

package vecmath

// There is no assembly in this build; the comments are in the other files.

func Unary(Func, []float32, []float32) bool                                { return false }
func Part(PartFunc, []float32, []float32) (int, bool)                      { return 0, false }
func Swish([]float32, []float32, float32) bool                             { return false }
func Scale([]float32, []float32, float32) bool                             { return false }
func Clamp([]float32, []float32, float32, float32) bool                    { return false }
func RoundScaled([]float32, []float32, float32, float32, float32) bool     { return false }
func Binary(Func2, []float32, []float32, []float32) bool                   { return false }
func ScaleMul([]float32, []float32, float32, []float32) bool               { return false }
func ScaleMulAdd([]float32, []float32, float32, []float32, []float32) bool { return false }
func Blend([]float32, float32, []float32, float32, []float32) bool         { return false }
func RotateHalf([]float32, []float32, []float32, []float32, bool) bool     { return false }
func RotatePairs([]float32, []float32, []float32, []float32, bool) bool    { return false }
func Reduce(Reduction, []float32) (float32, bool)                          { return 0, false }
func ExpSum([]float32, []float32, float32) (float32, bool)                 { return 0, false }
func Dots[T Row](Element, []float32, []float32, []T, int) bool             { return false }
func Mix[T Row](Element, []float32, []float32, []T, int) bool              { return false }
func WidenF16[H ~uint16]([]float32, []H) int                               { return 0 }
func WidenBF16[H ~uint16]([]float32, []H) int                              { return 0 }
func WidenI8([]float32, []int8) int                                        { return 0 }
func NarrowF16[H ~uint16]([]H, []float32) int                              { return 0 }
func NarrowBF16[H ~uint16]([]H, []float32) int                             { return 0 }
func QuantMul([]int8, []float32, float64, float64, float64) int            { return 0 }
func QuantShare([]int8, []float32, float32) int                            { return 0 }
func QuantDiv([]int8, []float32, []float32, []float32, float32) int        { return 0 }
