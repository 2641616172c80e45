// Package decoder holds the shapes of well-known decoder models as data, in the
// form of Hugging Face's config.json, and runs steps of a model of such a shape
// for the sake of its time: weights are whatever memory holds, which is nothing
// at all on a simulated device without numerics. What a step enqueues is what a
// real model of the shape does.
//
// A layer is one graph operation, or part of one of the whole step (Load.Whole):
//
//	norm, qkv product, split, [norms of queries and keys], rope, cache write,
//	attention, out product, add + norm, gate-up product, swiglu, down product, add
//
// and a step is the embedding, the layers, the final norm and the head, with one
// copy of indices to the device at its start and one of the chosen tokens back at
// its end.
//
// # What is simplified
//
// Layers share the weights of their norms, which are a few kilobytes. Experts are
// one dense network as wide as the experts that a step is expected to touch: the
// bytes are right, the flops are those of every token in every such expert.
// Sampling, and the exchange of results between the devices of a tensor-parallel
// group, are left out.
package decoder
