package tilingtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/mempool"
	"goatb/tiling"
)

const (
	blockSize = 8192
	// outSize holds what a kernel saw: block dim, key, a byte for each block,
	// tiling.
	outSize = 4096 + 64
)

// bed is a device with two execute streams, rings of a few small blocks and a
// copy stream: what a context gives to a launch.
type bed struct {
	*testing.T
	dev        device.Device
	policy     tiling.Policy
	streams    []*tape
	copies     *tape
	events     *tiling.EventRing
	rings      rings
	host       *mempool.Ring
	device     *mempool.Ring
	fork, join device.Event
	// seen numbers events in the order in which they are met; recording keeps
	// a transcript.
	seen       map[device.Event]int
	recording  bool
	transcript strings.Builder
}

// rings is the number of blocks of each ring.
type rings struct{ host, device int }

func newBed(t *testing.T, dev device.Device, p tiling.Policy, r rings) *bed {
	b := &bed{T: t, dev: dev, policy: p, rings: r}
	for _, name := range []string{"stream 0", "stream 1"} {
		b.streams = append(b.streams, b.newTape(name))
	}
	b.copies = b.newTape("copies")
	var err error
	b.events, err = tiling.NewEventRing(dev, tiling.CopyEvents)
	require.NoError(t, err)
	b.fork, b.join = b.newEvent(), b.newEvent()
	hostMem, err := dev.AllocHost(int64(r.host) * blockSize)
	require.NoError(t, err)
	deviceMem, err := dev.Alloc(int64(r.device) * blockSize)
	require.NoError(t, err)
	b.host, err = mempool.NewRing(dev, hostMem, r.host, blockSize)
	require.NoError(t, err)
	b.device, err = mempool.NewRing(dev, deviceMem, r.device, blockSize)
	require.NoError(t, err)
	return b
}

func (b *bed) newStream() device.Stream {
	s, err := b.dev.NewStream()
	require.NoError(b, err)
	return s
}

func (b *bed) newTape(name string) *tape { return &tape{Stream: b.newStream(), bed: b, name: name} }

func (b *bed) newEvent() device.Event {
	e, err := b.dev.NewEvent()
	require.NoError(b, err)
	return e
}

// close checks that nothing is held and ends everything.
func (b *bed) close() {
	b.sync()
	require.Zero(b, b.host.Stats().InUse, "host blocks in use after the work")
	require.Zero(b, b.device.Stats().InUse, "device blocks in use after the work")
	require.NoError(b, b.host.Close())
	require.NoError(b, b.device.Close())
	require.NoError(b, b.events.Close())
	require.NoError(b, b.dev.Close())
}

func (b *bed) sync() {
	b.Helper()
	for _, s := range append([]*tape{b.copies}, b.streams...) {
		if !s.closed {
			require.NoError(b, s.Synchronize(b.Context()))
		}
	}
}

// out returns memory for what a kernel saw, unlike any of it.
func (b *bed) out() device.Buffer {
	m, err := b.dev.Alloc(outSize)
	require.NoError(b, err)
	for i := range m.Bytes() {
		m.Bytes()[i] = 0xcc
	}
	return m
}

// hold makes a stream wait until the function that it returns is called.
func (b *bed) hold(s *tape) (release func()) {
	gate, opener := b.newEvent(), b.newStream()
	require.NoError(b, s.Stream.Wait(gate))
	return func() {
		require.NoError(b, opener.Record(gate))
		require.NoError(b, opener.Synchronize(b.Context()))
		require.NoError(b, opener.Close())
	}
}

// stalls returns the stalls of both rings.
func (b *bed) stalls() int64 { return b.host.Stats().Stalls + b.device.Stats().Stalls }

// tape is a stream that counts and, while its bed is recording, writes down
// what is enqueued on it.
type tape struct {
	device.Stream
	bed    *bed
	name   string
	calls  int
	closed bool
}

// note counts a call; the text is asked for while the bed is recording.
func (s *tape) note(text func() string) {
	s.calls++
	if s.bed.recording {
		fmt.Fprintf(&s.bed.transcript, "%s: %s\n", s.name, text())
	}
}

func (b *bed) eventName(e device.Event) string {
	n, ok := b.seen[e]
	if !ok {
		n = len(b.seen)
		if b.seen == nil {
			b.seen = map[device.Event]int{}
		}
		b.seen[e] = n
	}
	return fmt.Sprintf("e%d", n)
}

// Launch notes and enqueues.
func (s *tape) Launch(l *device.Launch) error {
	s.note(func() string {
		if l.Inline != nil {
			return fmt.Sprintf("kernel %d, tiling of %d bytes with the launch", uint32(l.Key), len(l.Inline))
		}
		return fmt.Sprintf("kernel %d, tiling of %d bytes in device memory", uint32(l.Key), l.Tiling.Size())
	})
	return s.Stream.Launch(l)
}

// Copy notes and enqueues.
func (s *tape) Copy(dst, src device.Buffer) error {
	s.note(func() string { return fmt.Sprintf("copy of %d bytes", dst.Size()) })
	return s.Stream.Copy(dst, src)
}

// Record notes and enqueues.
func (s *tape) Record(e device.Event) error {
	s.note(func() string { return "record " + s.bed.eventName(e) })
	return s.Stream.Record(e)
}

// Wait notes and enqueues.
func (s *tape) Wait(e device.Event) error {
	s.note(func() string { return "wait for " + s.bed.eventName(e) })
	return s.Stream.Wait(e)
}

// Close closes the stream.
func (s *tape) Close() error { s.closed = true; return s.Stream.Close() }
