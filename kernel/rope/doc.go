// Package rope holds the kernels of rotary position embeddings: every head of
// the queries and keys of a token is turned by the token's row of cosines and
// sines.
//
// A head of d elements is cut into coeff/2 groups of 2·d/coeff neighbours; in
// each group element i of the first half and element i of the second half are
// a pair: coeff 2 pairs the halves of the head, coeff d pairs neighbours. A
// head wider than the rows of cosines turns its first elements and copies the
// rest.
package rope
