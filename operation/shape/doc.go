// Package shape holds the operations that move data without computing on it,
// Transpose, Concat, Split, Slice and Gather, and those that compute with its rows,
// Softmax, Sort and IndexAdd.
//
// The data movers take every element type under profile native; they copy bits.
package shape

// everyType is the variable of a native combination that stands for all types.
const everyType = " | T=f32,f16,bf16,f64,int8,int16,int32,int64,uint8,uint16,uint32,uint64,bool,complex64,complex128"
