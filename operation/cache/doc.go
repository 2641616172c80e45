// Package cache holds the operations that write the caches of keys and values.
// They work in place: an output is the memory of the cache that it updates.
// Where the caller passes another output, the cache is copied to it first.
package cache
