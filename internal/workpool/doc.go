// Package workpool runs the blocks of a job on several goroutines with as
// little delay as Go allows: each worker claims neighbouring blocks of a part of
// its own and then the ends of others' parts, the submitter works too and never
// depends on a helper that has not started, and idle helpers spin for a bounded
// time before they park.
//
// Go's own means of waking a goroutine (channels, sync.Cond, sync.WaitGroup)
// cost 2 to 15 microseconds, more than many kernels take. A helper that still
// spins sees new work within about 100 ns. The spin ends after a bounded number
// of iterations and a bounded time, whichever comes first, so a pool without
// work uses no processor time, a machine that has fewer free cores than helpers
// keeps its speed, and a virtual clock (testing/synctest) can advance.
package workpool
