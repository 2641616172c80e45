// Package compiled keeps captured graphs in files, so that a later process
// captures them without judging, generating or tiling anything.
//
// A File belongs to one chip, one form and one machine. It has a Unit for each
// planned graph: what the graph's kernels were asked to do, and what package
// capture made of it: marks with their reasons, tilings, segments and task lists.
// File.Plan gives a graph that was planned again its unit, when everything that
// the unit depends on is equal; addresses and the layout of the workspace are not
// among that, they stay those of the new plan.
//
// The bytes of a file are a header and JSON:
//
//	8 bytes   "GoATBcmp"
//	4 bytes   format version, little endian
//	4 bytes   zero
//	8 bytes   length of the JSON
//	32 bytes  SHA-256 of the 24 bytes above and of the JSON
//	the JSON
//
// The checksum finds damage, not malice: a file is trusted as a program is, since
// kernels walk memory as its tilings say.
package compiled
