//go:build noasm || !amd64

package vecmath

// There is no assembly in this build; the comments are in the other files.

func Unary[T Row](Func, Element, []T, []T) bool                                      { return false }
func Binary[T Row](Func2, Element, []T, []T, []T) bool                               { return false }
func SwiGLUGrad[T Row](Element, []T, []T, []T, []T, []T) bool                        { return false }
func Scalar[T Row](ScalarFunc, Element, []T, []T, float32) bool                      { return false }
func Part(PartFunc, []float32, []float32) (int, bool)                                { return 0, false }
func Swish[T Row](Element, []T, []T, float32) bool                                   { return false }
func Reduce[T Row](Reduction, Element, []T) (float32, bool)                          { return 0, false }
func ExpSum[T Row](Element, []float32, []T, float32) (float32, bool)                 { return 0, false }
func Soften([]float32, int, int, int, float32, []float32, []float32) bool            { return false }
func ShareRows([]float32, []float32, []float32) bool                                 { return false }
func Softmax[T Row](Element, []T, []T, int, []float32) bool                          { return false }
func ScaleTo[T Row](Element, []T, []float32, float32) bool                           { return false }
func ScaleMul[T Row](Element, []T, []T, float32, []float32) bool                     { return false }
func ScaleMulTo[T Row](Element, []T, []float32, float32, []float32) bool             { return false }
func ScaleMulAdd([]float32, []float32, float32, []float32, []float32) bool           { return false }
func Blend([]float32, float32, []float32, float32, []float32) bool                   { return false }
func Clamp([]float32, []float32, float32, float32) bool                              { return false }
func RoundScaled([]float32, []float32, float32, float32, float32) bool               { return false }
func Rotate[T Row](Rotation, Element, []T, []T, int, int, []float32, []float32) bool { return false }
func Dots[T Row](Element, []float32, []float32, []T, int) bool                       { return false }
func Mix[T Row](Element, []float32, []float32, []T, int) bool                        { return false }
func WidenF16[H ~uint16]([]float32, []H) bool                                        { return false }
func WidenBF16[H ~uint16]([]float32, []H) bool                                       { return false }
func WidenI8([]float32, []int8) bool                                                 { return false }
func NarrowF16[H ~uint16]([]H, []float32) bool                                       { return false }
func NarrowBF16[H ~uint16]([]H, []float32) bool                                      { return false }
func QuantMul([]int8, []float32, float64, float64, float64) int                      { return 0 }
func QuantShare[T Row](Element, []int8, []T, float32) int                            { return 0 }
func QuantDiv([]int8, []float32, []float32, []float32, float32) int                  { return 0 }
func Turn(int, []byte, []byte, int, int, int, int) (int, int)                        { return 0, 0 }
func Words[T any](WordFunc, []T, []T, []T) int                                       { return 0 }
func Greater[T any](Number, []int8, []T, []T) int                                    { return 0 }
func Equal[T any](Number, []int8, []T, []T) int                                      { return 0 }
func Logic(LogicFunc, []uint8, []uint8, []uint8) int                                 { return 0 }
func Not([]uint8, []uint8) int                                                       { return 0 }
func Convert[D, S any](Conversion, []D, []S) int                                     { return 0 }
func FloatInts([]int32, []float32, float32, float32) int                             { return 0 }
func CopyAround([]byte, []byte) bool                                                 { return false }
