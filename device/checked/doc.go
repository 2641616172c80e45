// Package checked is a layer around any device that finds misuse of it.
//
//	d := checked.New(inner)
//
// The layer passes every call on and watches: the results are those of the
// inner device, a good deal slower. What it finds becomes an error of the stream
// concerned, a *Finding inside a *status.OpError, and is returned by the next
// Synchronize or Close; the work itself goes on as it would without the layer.
//
// # What it finds
//
//   - UseAfterFree: a launch or copy that uses freed memory is refused by every
//     device; the layer adds where the memory was freed.
//   - Deadlock: a Synchronize that would hang because its streams wait for a
//     record that nobody enqueues, or for each other in a circle. A circle is
//     reported at once, a missing record after a grace time (WithGrace), since
//     another goroutine may still enqueue it.
//   - Race: two streams use the same bytes, one of them to write, and neither
//     an event nor the host orders them. Every operand counts, the first
//     Launch.Inputs of them as read, as do scratch, tiling and copies.
//   - OutOfBounds: bytes before or behind an allocation were written. Guards are
//     checked after each launch, at Synchronize and at Free.
//   - Overlap: an output of a launch shares bytes with another output, or with
//     an input without being the same window (computing in place is fine) or,
//     under Program.Overlay, the one being inside the other.
//   - Reuse: host memory was rewritten while an enqueued copy still had to read
//     it.
//   - Stale: a kernel of a task list that may run with the parameters of before
//     its update, because its stream fetches it at a wait that the update is not
//     ordered before (device.CapPrefetch): more nops are needed between the two.
//   - Leak: allocations, streams, events and models that nobody freed, closed or
//     unloaded, with the stacks of their creation, if WithLeaks asks for them.
//
// Task lists are watched like what streams are given one by one: each execution
// counts as the tasks that the device takes from the list, so a race between two
// streams of a list, or with work outside it, is found at the Replay.
//
// Orders are taken from what the program enqueues, not from what happened to
// run first: a missing event is found even when the timing was lucky. The layer
// assumes that all goroutines of the host know what one of them has waited for;
// so a race is never reported wrongly, and one that only a missing lock between
// goroutines permits is not found.
//
// Guards take about two pages for each allocation.
package checked
