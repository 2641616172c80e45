// Package attention holds the attention operations: over a sequence's own keys
// or a contiguous cache, and over a paged cache. They take the same shapes of
// heads: query head h reads key head h / (headNum/kvHeadNum).
package attention
