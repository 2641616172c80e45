package checked_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/checked"
)

func TestRace(t *testing.T) {
	const found = "launch of second (op: second) on stream 1 at race_test.go %s 8 bytes (its operand 0) that launch of first (op: first) on stream 0 at race_test.go %s (its operand 0), and nothing orders the two"
	read := func(name string, x device.Buffer) *device.Launch { return kernel(name, 1, x) }
	write := func(name string, x device.Buffer) *device.Launch { return kernel(name, 0, x) }
	for _, c := range []struct {
		name          string
		first, second func(string, device.Buffer) *device.Launch
		want          string
	}{
		{"write then write", write, write, fmt.Sprintf(found, "writes", "writes")},
		{"write then read", write, read, fmt.Sprintf(found, "reads", "writes")},
		{"read then write", read, write, fmt.Sprintf(found, "writes", "reads")},
		{"read then read", read, read, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inModes(t, func(b *bed) {
				s, o, x := b.stream(), b.stream(), b.alloc(64)
				b.ok(s.Launch(c.first("first", x.At(0, 32))))
				b.ok(o.Launch(c.second("second", x.At(24, 16))))
				if c.want == "" {
					b.sync(o, "")
				} else {
					require.Equal(b, c.want, b.sync(o, checked.Race))
				}
				b.sync(s, "")
			})
		})
	}
}

func TestRaceOfOtherOperands(t *testing.T) {
	inModes(t, func(b *bed) {
		s, o, x, host := b.stream(), b.stream(), b.alloc(64), b.host(64)
		b.ok(s.Copy(x, host))
		l := kernel("k", 0)
		l.Tiling = x.At(0, 8)
		b.ok(o.Launch(l))
		require.Equal(b, "launch of k (op: k) on stream 1 at race_test.go reads 8 bytes (its tiling) that copy on stream 0 at race_test.go writes (its destination), and nothing orders the two", b.sync(o, checked.Race))

		l = kernel("k", 0)
		l.Scratch = host
		b.ok(o.Launch(l))
		require.Contains(b, b.sync(o, checked.Race), "writes 64 bytes (its scratch) that copy on stream 0 at race_test.go reads (its source)")

		mem := make([]byte, 100)
		b.ok(s.Launch(kernel("first", 0, device.Wrap(mem[:60]))))
		b.ok(o.Launch(kernel("second", 0, device.Wrap(mem[50:]))))
		require.Contains(b, b.sync(o, checked.Race), "writes 10 bytes")

		b.ok(s.Launch(kernel("first", 0, b.wrapped(x))))
		b.ok(o.Launch(kernel("second", 0, x)))
		require.Contains(b, b.sync(o, checked.Race), "writes 64 bytes")
		b.sync(s, "")
	})
}

func (b *bed) wrapped(x device.Buffer) device.Buffer { return device.Wrap(x.Bytes()) }

// TestOrdered orders two writes in every way that the contract knows.
func TestOrdered(t *testing.T) {
	for name, order := range map[string]func(b *bed, first, second device.Stream, launch func(device.Stream)){
		"event": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			launch(s)
			b.ok(s.Record(e))
			b.ok(o.Wait(e))
			launch(o)
		},
		"wait before record": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			b.ok(o.Wait(e))
			launch(o)
			launch(s)
			b.ok(s.Record(e))
		},
		"wait before record, many": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e, f, third := b.event(), b.event(), b.stream()
			b.ok(o.Wait(f))
			b.ok(third.Wait(e))
			b.ok(third.Record(f))
			launch(o)
			launch(s)
			b.ok(s.Record(e))
		},
		"third stream": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e, f, third := b.event(), b.event(), b.stream()
			launch(s)
			b.ok(s.Record(e))
			b.ok(third.Wait(e))
			b.ok(third.Record(f))
			b.ok(o.Wait(f))
			launch(o)
		},
		"wait then reset": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			b.ok(s.Record(e))
			b.ok(o.Wait(e))
			b.ok(o.Reset(e))
			b.ok(o.Wait(e))
			launch(o)
			launch(s)
			b.ok(s.Record(e))
		},
		"synchronize": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			launch(s)
			b.sync(s, "")
			launch(o)
		},
		"synchronize of a later stream": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e, third := b.event(), b.stream()
			launch(s)
			b.ok(s.Record(e))
			b.ok(third.Wait(e))
			b.sync(third, "")
			launch(o)
		},
		"event synchronize": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			launch(s)
			b.ok(s.Record(e))
			b.ok(e.Synchronize(b.Context()))
			launch(o)
		},
		"query": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			launch(s)
			for !s.Query() {
				b.wait()
			}
			launch(o)
		},
		"event query": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			launch(s)
			b.ok(s.Record(e))
			for !e.Query() {
				b.wait()
			}
			launch(o)
		},
		"record after synchronize": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			b.ok(o.Wait(e))
			launch(o)
			launch(s)
			b.sync(s, "")
			b.ok(b.stream().Record(e))
		},
		"stream close": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			launch(s)
			b.ok(s.Close())
			launch(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inModes(t, func(b *bed) {
				s, o, x := b.stream(), b.stream(), b.alloc(8)
				order(b, s, o, func(s device.Stream) { b.ok(s.Launch(kernel("k", 0, x))) })
				b.sync(o, "")
			})
		})
	}
}

// TestNotOrdered has events that order something else.
func TestNotOrdered(t *testing.T) {
	for name, order := range map[string]func(b *bed, first, second device.Stream, launch func(device.Stream)){
		"record too early": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			b.ok(s.Record(e))
			launch(s)
			b.ok(o.Wait(e))
			launch(o)
		},
		"wait too late": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			launch(s)
			b.ok(s.Record(e))
			launch(o)
			b.ok(o.Wait(e))
		},
		"record of another stream": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			e := b.event()
			launch(s)
			b.ok(s.Record(e))
			b.ok(b.stream().Record(e))
			b.ok(o.Wait(e))
			launch(o)
		},
		"synchronize of another stream": func(b *bed, s, o device.Stream, launch func(device.Stream)) {
			launch(s)
			b.sync(o, "")
			launch(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inModes(t, func(b *bed) {
				s, o, x := b.stream(), b.stream(), b.alloc(8)
				order(b, s, o, func(s device.Stream) { b.ok(s.Launch(kernel("k", 0, x))) })
				require.Contains(b, b.sync(o, checked.Race), "nothing orders the two")
				b.sync(s, "")
			})
		})
	}
}

// TestFreedMemoryIsForgotten reuses addresses without an order.
func TestFreedMemoryIsForgotten(t *testing.T) {
	inModes(t, func(b *bed) {
		s, o := b.stream(), b.stream()
		for i := range 50 {
			x := b.alloc(64)
			b.ok([]device.Stream{s, o}[i%2].Launch(kernel("k", 0, x)))
			b.ok(b.Free(x))
		}
		b.sync(s, "")
		b.sync(o, "")
	})
}

// program is a random program over several streams in which every task waits
// for all earlier tasks that it conflicts with, through events. drop leaves one
// of those waits out.
func program(b *bed, seed uint64, drop int) (waits int, err error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	const streams, buffers, tasks = 4, 5, 60
	var s [streams]device.Stream
	for i := range s {
		s[i] = b.stream()
	}
	mem := b.alloc(buffers * 64)
	type use struct {
		stream int
		done   device.Event
	}
	var errs []error
	var writer [buffers]*use
	var readers [buffers][]*use
	for range tasks {
		me := rng.IntN(streams)
		in, out := rng.IntN(buffers), rng.IntN(buffers)
		mine := &use{stream: me, done: b.event()}
		before := append([]*use{writer[in], writer[out]}, readers[out]...)
		seen := map[*use]bool{nil: true}
		for _, u := range before {
			if seen[u] || u.stream == me {
				continue
			}
			seen[u] = true
			if waits != drop {
				b.ok(s[me].Wait(u.done))
			}
			waits++
		}
		b.ok(s[me].Launch(kernel("k", 1, mem.At(int64(in*64), 64), mem.At(int64(out*64), 64))))
		b.ok(s[me].Record(mine.done))
		if in != out {
			readers[in] = append(readers[in], mine)
		}
		writer[out], readers[out] = mine, nil
		if rng.IntN(20) == 0 {
			errs = append(errs, s[me].Synchronize(b.Context()))
		}
	}
	for i := range s {
		errs = append(errs, s[i].Synchronize(b.Context()))
	}
	return waits, errors.Join(errs...)
}

// TestRandomPrograms runs ordered random programs, which must be clean, and then
// the same ones with one wait left out: of these many must be found, though not
// all, because another chain of events may order the same tasks.
func TestRandomPrograms(t *testing.T) {
	inModes(t, func(b *bed) {
		dropped, found := 0, 0
		for seed := range uint64(8) {
			waits, err := program(b, seed, -1)
			require.NoError(b, err, "seed %d", seed)
			for drop := 0; drop < waits; drop += 9 {
				_, err := program(b, seed, drop)
				dropped++
				if err != nil {
					require.Contains(b, text(b.T, err, checked.Race), "nothing orders the two")
					found++
				}
			}
		}
		require.Greater(b, found*10, dropped*3, "%d of %d missing waits found", found, dropped)
	})
}
