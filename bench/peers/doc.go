// Package peers times GoATB's kernels beside those of other libraries in one
// run: gonum, OpenBLAS and ggml. It is a module of its own, so that nobody who
// imports goatb inherits them.
//
// The two C libraries are loaded at run time from the folder that the script
// `fetch` fills (or from the one that PEERS_DIR names); a benchmark whose peer
// is not there says so and goes on without it.
package peers
