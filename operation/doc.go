// Package operation turns parameter structs into operations.
//
// An operation is its parameter struct: a type that implements Spec. New makes
// an Operation from it, Setup plans it for the descriptors at hand and returns
// the workspace size, Execute enqueues its kernels. Graph operations are built
// from names or from tensor ids and are operations themselves.
//
// Families of operations live in the packages below this one, one file per
// operation. Checks that hold for every operation (arity, rank, size, the
// dtype and layout table) are made here from the operation's Signature.
package operation
