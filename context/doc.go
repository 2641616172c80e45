// Package context holds the Context: the device, the execute streams, the copy
// stream, the tiling rings, the caches, the runner pool and the configuration
// that operations run with.
//
// Users know it as atb.Context. Inside this module it is always imported as
// atbctx, so that the standard library's package keeps its name.
//
// # Concurrency
//
// A Context plans and enqueues for one goroutine at a time: Setup, Execute,
// PreLaunch, and everything that changes its streams. A second goroutine may
// run Launch of one operation while the first runs Setup and PreLaunch of
// another. Both rules are checked: a call that breaks them returns an error.
// Synchronize and Stats may be called from any goroutine, and Close too.
package context
