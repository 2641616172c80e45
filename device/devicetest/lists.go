package devicetest

import (
	"encoding/binary"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goatb/device"
)

// ListOptions are the properties of a device that the checks of task lists ask
// for.
type ListOptions struct {
	// Prefetch is what CapPrefetch has to answer.
	Prefetch int
	// NoTaskUpdate asks for a device without task update.
	NoTaskUpdate bool
	// Deadline is that of preprocess tasks without one of their own.
	Deadline time.Duration
}

// listDefaults are the options of most checks.
func listDefaults() ListOptions { return ListOptions{Prefetch: 2, Deadline: time.Minute} }

// listCheck is one property of a device that runs task lists.
type listCheck struct {
	name    string
	options ListOptions
	run     func(b *listBed)
}

// RunTaskLists checks the part of a device that runs task lists, on devices that
// open makes with the wanted options.
func RunTaskLists(t *testing.T, open func(t *testing.T, o ListOptions) device.ModelDevice) {
	for _, group := range []struct {
		name   string
		checks []listCheck
	}{
		{"replay", replayChecks()},
		{"sunk", sunkChecks()},
		{"super kernel", superChecks()},
		{"latch", latchChecks()},
		{"load", listLoadChecks()},
		{"random", randomListChecks()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.checks {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { c.run(newListBed(t, open, c.options)) })
				})
			}
		})
	}
}

// listBed is a bed for a device that runs task lists.
type listBed struct {
	*bed
	models device.ModelDevice
}

func newListBed(t *testing.T, open func(*testing.T, ListOptions) device.ModelDevice, o ListOptions) *listBed {
	var d device.ModelDevice
	b := newBed(t, func(t *testing.T) device.Device {
		d = open(t, o)
		return d
	})
	return &listBed{bed: b, models: d}
}

func (b *listBed) load(l *device.TaskList) loaded {
	b.Helper()
	m, err := b.models.Load(l)
	require.NoError(b, err)
	return loaded{b: b, Model: m, list: l}
}

// loaded is a model whose calls fail the test on an error.
type loaded struct {
	b *listBed
	device.Model
	list *device.TaskList
}

func (m loaded) replay(on stream, r *device.Refresh) {
	m.b.Helper()
	require.NoError(m.b, m.Replay(on.Stream, r))
}

// begin replays on a goroutine of its own, so that an execution that is held in
// its middle holds nobody else, and returns what waits for the call.
func (m loaded) begin(on stream, r *device.Refresh) (ended func()) {
	done := make(chan error, 1)
	go func() { done <- m.Replay(on.Stream, r) }()
	return func() {
		m.b.Helper()
		require.NoError(m.b, <-done)
	}
}

// label names the operation of a test list.
func label(op string) *device.Label { return &device.Label{Op: op, Node: "node 3", Kernel: "mark/go"} }

// poison fills outputs before a run.
const poison = 0xEE

// marks is the number of words of an operation's output.
const marks = 8

// marked is a program of variant v: block i writes what it was launched with
// into word i of its last operand.
func marked(v uint64) *device.Program {
	return &device.Program{Name: "test/mark", Run: func(a *device.Args, block int) error {
		out := device.View[uint64](a.Mem(len(a.Buffers) - 1))
		out[block] = mark(v, a.Key, a.Blocks, a.Tiling[0])
		return nil
	}}
}

func mark(variant, key uint64, blocks int, tiling byte) uint64 {
	return variant<<48 | key<<32 | uint64(blocks)<<16 | uint64(tiling)
}

// markedWords is the output of marked.
func markedWords(variant, key uint64, blocks int, tiling byte) []uint64 {
	out := make([]uint64, marks)
	for i := range out {
		out[i] = binary.LittleEndian.Uint64(repeat(poison, 8))
		if i < blocks {
			out[i] = mark(variant, key, blocks, tiling)
		}
	}
	return out
}

// tiled is what the tiling function of a test operation makes of its value.
func tiled(n byte) (key uint64, blocks int) { return 1 + uint64(n)%3, 1 + int(n)%marks }

// tileNow is the tiling function itself: input 0 is the value, the outputs are
// key, block dim and tiling.
func tileNow(a *device.CPUArgs) error {
	n := a.Inputs[0][0]
	key, blocks := tiled(n)
	binary.LittleEndian.PutUint64(a.Outputs[0], key)
	binary.LittleEndian.PutUint32(a.Outputs[1], uint32(blocks))
	a.Outputs[2][0] = n
	return nil
}

// operation is a test operation that is tiled on the device.
type operation struct {
	name                string
	key, blocks, tiling device.Buffer
	deadline            time.Duration
	function            atomic.Pointer[func(a *device.CPUArgs) error]
}

func (b *listBed) operation(name string) *operation {
	o := &operation{name: name, key: b.alloc(8), blocks: b.alloc(4), tiling: b.alloc(64)}
	o.tile(tileNow)
	return o
}

// tile makes f the operation's tiling function.
func (o *operation) tile(f func(a *device.CPUArgs) error) { o.function.Store(&f) }

// Parameters that entries of test operations are loaded with.
const (
	loadedKey    = 2
	loadedBlocks = 7
)

func (o *operation) patch() device.Patch {
	return device.Patch{
		Key: device.Absolute(o.key), Blocks: device.Absolute(o.blocks),
		Binary: &device.Binary{Name: "mark", Variants: []device.Variant{
			{Key: 1, Program: marked(1)}, {Key: 2, Program: marked(2)}, {Key: 3, Program: marked(3)},
		}},
	}
}

func (o *operation) kernel(out device.Address) device.Kernel {
	return device.Kernel{
		Program: marked(loadedKey), Blocks: loadedBlocks, Key: loadedKey,
		Operands: []device.Address{out}, Tiling: device.Absolute(o.tiling),
	}
}

func (o *operation) preprocess(value device.Address) *device.Preprocess {
	return &device.Preprocess{
		Function: &device.Function{Name: "tile " + o.name, Run: func(a *device.CPUArgs) error { return (*o.function.Load())(a) }},
		Engine:   device.AICPU, Deadline: o.deadline, Inputs: []device.Address{value},
		Outputs: []device.Address{device.Absolute(o.key), device.Absolute(o.blocks), device.Absolute(o.tiling)},
	}
}

// sink appends the sequence of a sunk operation: tiling, wait, nops, kernel,
// update, record.
func (o *operation) sink(l *device.TaskList, main, tiling device.StreamID, nops int, value, out device.Address) {
	at, e, k := label(o.name), l.NewEvent(), o.kernel(out)
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Label: at, Preprocess: o.preprocess(value)})
	l.Add(device.Task{Kind: device.EventWaitTask, Stream: main, Event: e})
	for range nops {
		l.Add(device.Task{Kind: device.NopTask, Stream: main})
	}
	id := l.Add(device.Task{Kind: device.AllKernelTask, Stream: main, Label: at, Kernel: &k})
	l.Add(device.Task{Kind: device.UpdateTask, Stream: tiling, Label: at, Update: &device.Update{Target: main, Task: id, Patch: o.patch()}})
	l.Add(device.Task{Kind: device.EventRecordTask, Stream: tiling, Event: e})
}

// input and output are whole inputs and outputs of the sizes of test operations.
func input(i int) device.Address {
	return device.Address{Type: device.InputMemory, Index: i, Size: 1}
}

func output(i int) device.Address {
	return device.Address{Type: device.OutputMemory, Index: i, Size: 8 * marks}
}

// sunkOne is a list of one sunk operation.
func (b *listBed) sunkOne(o *operation, nops int) *device.TaskList {
	l := &device.TaskList{Name: "one"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	o.sink(l, main, tiling, nops, input(0), output(0))
	return l
}

// value is memory that holds n.
func (b *listBed) value(n byte) device.Buffer {
	buf := b.alloc(1)
	buf.Bytes()[0] = n
	return buf
}

// out is poisoned memory for an output.
func (b *listBed) out() device.Buffer {
	buf := b.alloc(8 * marks)
	copy(buf.Bytes(), repeat(poison, 8*marks))
	return buf
}

// moves gives input 0 and output 0 their memory.
func moves(in, out device.Buffer) *device.Refresh {
	return &device.Refresh{Moves: []device.Relocation{
		{Type: device.InputMemory, Buffer: in}, {Type: device.OutputMemory, Buffer: out},
	}}
}

func words(b device.Buffer) []uint64 { return device.View[uint64](b.Bytes()) }
