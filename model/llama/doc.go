// Package llama runs Llama models with the operations of GoATB: one graph
// operation for each layer over a paged KV cache, one for the embedding and one
// for the head, or one for a whole step.
//
// A Session serves a fixed number of sequences. Every call of Forward computes
// a list of rows, each a token of a sequence at its position; the rows of a
// prompt and the single row of a decoding step go the same way. A steady
// decoding step finds every Setup unchanged and allocates nothing.
package llama
