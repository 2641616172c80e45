// Package optimal searches for the smallest arena that holds buffers of known
// lifetimes: offline dynamic storage allocation, exactly. Package mempool calls it
// where no heuristic meets the lower bound; it can be used alone.
//
// # The search
//
// Push all buffers of a plan down until each rests at offset 0 or on another
// one: the plan is no larger, so only such plans are looked for. They are built
// from below. Of the buffers that rest on placed ones, the lowest is taken (by a
// rank among equal offsets), and there are two cases: it lies there, and all its
// waiting neighbours lie above it; or it lies on one of them, so not below the
// lowest of their tops. That is a partition of all plans, whatever the rank.
//
// For every waiting buffer the search knows the least offset that is left. What
// follows is drawn from three rules until nothing changes:
//
//   - the lowest buffer of a section lies no higher than the arena less the
//     total of all waiting buffers of the section (its room). When only one
//     buffer can be the lowest of a section, all others lie on it; when none can,
//     this is no way to a plan;
//   - a buffer above the room of a section is not the lowest of it: it lies on
//     another one;
//   - a buffer that was put off lies on a waiting neighbour until one is placed.
//
// Where no waiting buffer crosses a section's border, both sides are solved alone.
// Equal buffers keep their order.
//
// How soon a plan is found depends on the rank, by factors of thousands, and no
// rank is always good. So several orders are searched side by side, in turns of
// growing length. The arenas tried are the lower bound first, then those between
// it and the best plan, by bisection, with a quota of nodes that grows from round
// to round. One order that runs out of nodes to visit proves that an arena is too
// small.
//
// The search works with whole units: the greatest common divisor of all sizes
// and offsets.
package optimal
