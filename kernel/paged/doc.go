// Package paged holds the kernels of attention over a paged cache: keys and
// values of a sequence lie in blocks of a shared cache, and a block table says
// which ones.
//
// # Parts
//
// A context is walked in the parts of package parts. Within a part all scores
// are computed first, then one softmax with the part's own maximum, then the
// mix of the value rows. A row's bits do not depend on the other sequences of
// a batch, on the block size, on the number of workers, nor on which kernels
// do the work.
//
// Attend does all parts of a row in one kernel. Where there are too few rows to keep
// the cores busy over a long context with whole rows of the caches, Parts does every part
// apart and parts.Merge joins them; both ways give the same bits.
//
// An item of many rows packs the keys and values of its part into panels, which all
// its rows multiply; few rows multiply them as they lie, with the same bits.
//
// Rows are read where they lie, a few positions of all heads of an item at a time,
// so in the order of memory; the positions after them are fetched meanwhile. The
// scales of int8 keys go into the query, those of values behind the mix. Where
// integers are multiplied faster (VNNI) such a query becomes fixed-point numbers,
// each off by up to 2^-21 of the row's largest, and its products are exact.
//
// # Host values and device data
//
// Context lengths, query lengths and run statuses are host values: Tile reads
// and checks them. Block tables are device data: Run checks every block number
// that it uses.
package paged
