// Package trace records what the streams of a device and the host did, and
// writes it as a timeline in the JSON of Chrome's trace viewer, which
// chrome://tracing and ui.perfetto.dev open: a process for each Recorder, in it
// a row for the host and one for each stream, and an arrow from each host span
// to the first kernel that it has enqueued.
//
// A device reports tasks to a Recorder as they end; the host adds its own spans:
//
//	rec := trace.New("kernel-follow", 0)
//	dev, err := cpu.New(cpu.WithObserver(func(t cpu.Task) { rec.Task(trace.Task(t)) }))
//	start := time.Now()
//	err = op.Execute(pack, ws, c)
//	rec.Host(trace.Span{Name: op.Name(), Category: "execute", Start: start, End: time.Now(), Launches: 12})
//	err = trace.Write(f, rec)
package trace
