// Package llama runs Llama models with the operations of GoATB: one graph
// operation for each layer over a paged KV cache, one for the embedding and one
// for the head, or one for a whole step.
//
// A Session serves a fixed number of sequences. Every call of Forward computes
// a list of rows, each a token of a sequence at its position. Where sequences have
// several rows, as a prompt has, the graphs attend by SelfAttention's PREFIX_ENCODER,
// else by PagedAttention; a row has the same bits either way. A steady decoding step
// finds every Setup unchanged and allocates nothing.
package llama
