package checked_test

import (
	"errors"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/checked"
	"goatb/device/cpu"
)

var modes = []struct {
	name string
	opts []cpu.Option
}{
	{"async", []cpu.Option{cpu.WithWorkers(3), cpu.WithSpin(0)}},
	{"inline", []cpu.Option{cpu.WithInline()}},
}

// bed is a checked device whose calls fail the test on an error.
type bed struct {
	*testing.T
	*checked.Device
}

// inModes runs f in a bubble for each mode of the CPU device.
func inModes(t *testing.T, f func(b *bed), opts ...checked.Option) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := cpu.New(m.opts...)
				require.NoError(t, err)
				b := &bed{T: t, Device: checked.New(d, opts...)}
				t.Cleanup(func() { require.NoError(t, b.Close()) })
				f(b)
			})
		})
	}
}

func (b *bed) alloc(size int64) device.Buffer {
	buf, err := b.Alloc(size)
	require.NoError(b, err)
	return buf
}

func (b *bed) host(size int64) device.Buffer {
	buf, err := b.AllocHost(size)
	require.NoError(b, err)
	return buf
}

func (b *bed) stream() device.Stream {
	s, err := b.NewStream()
	require.NoError(b, err)
	return s
}

func (b *bed) event() device.Event {
	e, err := b.NewEvent()
	require.NoError(b, err)
	return e
}

func (b *bed) ok(err error) {
	b.Helper()
	require.NoError(b, err)
}

// sync synchronizes and returns the text of the only finding, with line numbers
// left out, "" when there is none.
func (b *bed) sync(s device.Stream, want checked.Kind) string {
	b.Helper()
	err := s.Synchronize(b.Context())
	if want == "" {
		require.NoError(b, err)
		return ""
	}
	return text(b.T, err, want)
}

var lineNumber = regexp.MustCompile(`\.go:\d+`)

// text returns the text of the only finding in err, line numbers left out.
func text(t *testing.T, err error, want checked.Kind) string {
	t.Helper()
	f, ok := errors.AsType[*checked.Finding](err)
	require.True(t, ok, "want a finding, got %v", err)
	require.Equal(t, want, f.Kind, "%v", err)
	return lineNumber.ReplaceAllString(f.Text, ".go")
}

// kernel is a launch of a kernel without effect on buffers, the first inputs of
// them read.
func kernel(name string, inputs int, bufs ...device.Buffer) *device.Launch {
	return &device.Launch{Blocks: 2, Inputs: inputs, Buffers: bufs, Label: &device.Label{Op: "op", Node: name},
		Program: &device.Program{Name: name, Run: func(*device.Args, int) error { return nil }}}
}

// wait lets everything else go on until it blocks.
func (b *bed) wait() { synctest.Wait() }
