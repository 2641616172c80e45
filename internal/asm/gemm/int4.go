package gemm

import "goatb/internal/cpu"

// Int4Tile multiplies a packed group of int16 rows with columns of a panel of
// int4 weights that have a scale for each group of K and column:
//
//	c[r][j] = factors[r] * sum over g of scale[g][j] * sum over k in g of a[r][k] * b[k][j]      (+ c[r][j] with add)
//
// with exact sums inside a group; the groups are added in order, fused, from 0.
//
// A group has 8 × octets elements of K. a holds words of two int16 along K, for
// each word of K those of all rows. A panel holds for each group 32 scales, f32
// or with half f16, and then its octets: 64 words of 16 bits, for column j the
// words 2j and 2j+1; bits 4i to 4i+3 of word 2j+h are element 2i+h of the octet,
// in two's complement. scales and b are the first scale and the first word of the
// tile's first column, so b may be half an octet further. c is f32, its rows stride elements apart. next and pace are those
// of Tile, for each octet.
type Int4Tile func(groups, octets int, a, b, scales, c *byte, stride int, add bool, factors *float32, half bool, next, pace uintptr)

// Int4Row multiplies a row with whole panels of int4 weights that lie one behind
// the other, with the sums of tiles whose add takes up the chunk before, bit by
// bit:
//
//	c[32p+j] = sum over chunks of factors[chunk] * sum over g in chunk of scale[g][j] * sum over k in g of x[k] * w[k][j]
//
// groups is the number of groups of a panel, chunk of those that share a factor,
// but for the last one. w is the first scale of the first panel. Int4Order has
// made x and less, of which it reads all for each panel; it fetches some memory
// behind the panels.
type Int4Row func(panels, groups, chunk, octets int, x *byte, less *int32, factors *float32, w *byte, c *float32, half bool)

// Int4Order orders a row of groups of 8 × octets elements from -32639 to 32639
// for an Int4Row: for each octet 16 bytes, the lower bytes of elements 0, 4, 1, 5,
// 2, 6, 3 and 7 and then the upper ones, so that 256·upper + lower is the element
// with both of them signed; and for each group -8 times the sum of its elements,
// which comes off weights that are taken unsigned, with 8 added.
type Int4Order func(groups, octets int, dst *byte, less *int32, x *int16)

// Int4Set is the loops for int4 weights.
type Int4Set struct {
	// Name tells the instructions, Needs are the features that have them.
	Name  string
	Needs cpu.Features
	// Rows holds the tiles of 1, 2, ... rows.
	Rows []Int4Tile
	// Columns is the width of a tile: 32, or 16 for half a panel.
	Columns int64
	Transpose
	// Row and Order multiply one row with panels as memory gives them, nil where
	// there are no such loops.
	Row   Int4Row
	Order Int4Order
	// Largest returns the largest absolute value of n elements, or NaN if one of
	// them is NaN. ToInt16 stores n elements times factor, rounded to nearest
	// even; products are within int16. n is a positive multiple of 16.
	Largest func(n int, x *float32) float32
	ToInt16 func(n int, dst *int16, x *float32, factor float32)
}

// Int4Sets lists all sets that the program holds, the fastest first.
func Int4Sets() []Int4Set { return int4Sets }
