// Package trace records what the streams of a device and the host did, and
// writes it as a timeline in the JSON of Chrome's trace viewer, which
// chrome://tracing and ui.perfetto.dev open: a process for each Recorder, in it
// a row for the host, one for each stream and one for each engine that a device
// tells of, an arrow from each call of the host to the task that it has
// enqueued, and counters.
//
// A device reports tasks to a Recorder as they end. What the host does comes from
// an Account and from the host's own spans:
//
//	rec := trace.New("kernel-follow", 0)
//	dev, err := cpu.New(cpu.WithObserver(rec.Task), cpu.WithHost(trace.NewAccount(rec)))
//	start := time.Now()
//	err = op.Execute(pack, ws, c)
//	rec.Host(trace.Span{Name: op.Name(), Category: "execute", Start: start, End: time.Now()})
//	err = trace.Write(f, rec)
//
// The simulated device reports both itself, in virtual time (sim.WithRecorder).
package trace
