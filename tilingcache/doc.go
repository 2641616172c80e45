// Package tilingcache keeps tilings so that they need not be computed again.
//
// There are two levels. A Local cache belongs to one operation: a few slots for
// each of its kernels, replaced round robin. A Global cache is a set of caches,
// one for each operation type, shared by all operations of a context and, when
// the user asks for it, by several contexts.
//
// A tiling is found only when everything it depends on is equal: the kernel,
// its parameters, the descriptors, the machine, the options and the host
// values. Hashes speed a lookup up; equality decides. An entry carries bytes
// and a launch shape and nothing of a policy, an address or a stream, so a hit
// is right under every policy and for every binding.
package tilingcache
