package faults_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/tiling"
)

// Every test runs under these policies where the policy could matter.
var policies = []string{"kernel-follow", "overall", "multi-stream", "device-sink"}

// usesRings reports whether launches under a policy take blocks of the rings.
func usesRings(t testing.TB, policy string) bool {
	t.Helper()
	p, err := tiling.ByName(policy)
	require.NoError(t, err)
	return p.UsesRings()
}

const (
	// guard is the number of canary bytes before and behind every tensor and
	// workspace, and their alignment.
	guard  = 512
	canary = 0xc5
	// poison fills what nobody has written: NaN in every float type.
	poison = 0xff
)

// bed is a context on a device. The memory that it hands out is poisoned and
// lies between canaries, which are checked at the end of the test.
type bed struct {
	testing.TB
	dev   device.Device
	c     *atb.Context
	areas []atb.Buffer
}

func noEnv(string) (string, bool) { return "", false }

func newDevice(t testing.TB, opts ...cpu.Option) device.Device {
	t.Helper()
	d, err := cpu.New(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// newBed makes a context on a device of two workers.
func newBed(t testing.TB, opts ...atb.Option) *bed {
	t.Helper()
	return bedOn(t, newDevice(t, cpu.WithWorkers(2)), opts...)
}

// bedOn makes a context on a device.
func bedOn(t testing.TB, d device.Device, opts ...atb.Option) *bed {
	t.Helper()
	c, err := atb.NewContext(d, append([]atb.Option{atb.WithEnv(noEnv)}, opts...)...)
	require.NoError(t, err)
	b := &bed{TB: t, dev: d, c: c}
	t.Cleanup(func() {
		b.checkCanaries()
		require.NoError(t, c.Close())
	})
	return b
}

// checkCanaries checks that nothing was written beside a tensor or workspace.
func (b *bed) checkCanaries() {
	b.Helper()
	want := bytes.Repeat([]byte{canary}, guard)
	for _, m := range b.areas {
		if !m.Live() {
			continue
		}
		mem := m.Bytes()
		assert.True(b, bytes.Equal(want, mem[:guard]), "bytes before an area of %d were written", len(mem)-2*guard)
		assert.True(b, bytes.Equal(want, mem[len(mem)-guard:]), "bytes behind an area of %d were written", len(mem)-2*guard)
	}
}

// area returns poisoned memory between canaries.
func (b *bed) area(size int64) atb.Buffer {
	b.Helper()
	m, err := b.c.Alloc(size + 2*guard)
	require.NoError(b, err)
	fill(m, canary)
	inside := m.At(guard, size)
	fill(inside, poison)
	b.areas = append(b.areas, m)
	return inside
}

func fill(m atb.Buffer, with byte) {
	mem := m.Bytes()
	for i := range mem {
		mem[i] = with
	}
}

// put makes the tensor of an operand.
func (b *bed) put(o operand) atb.Tensor {
	b.Helper()
	if o.absent() {
		return atb.Tensor{}
	}
	if o.host {
		return atb.Tensor{Desc: o.desc, Host: bytes.Clone(o.data)}
	}
	x := b.blank(o.desc)
	copy(x.Data.Bytes(), o.data)
	return x
}

func (b *bed) putAll(in []operand) []atb.Tensor {
	b.Helper()
	ts := make([]atb.Tensor, len(in))
	for i := range in {
		ts[i] = b.put(in[i])
	}
	return ts
}

// blank makes a tensor full of poison.
func (b *bed) blank(d atb.Desc) atb.Tensor {
	b.Helper()
	return atb.Tensor{Desc: d, Data: b.area(d.Bytes())}
}

func (b *bed) op(s atb.Spec) *atb.Op {
	b.Helper()
	o, err := atb.New(s)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, o.Close()) })
	return o
}

// pack makes poisoned outputs for inputs.
func (b *bed) pack(o *atb.Op, in ...atb.Tensor) atb.VariantPack {
	b.Helper()
	descs, err := o.InferShape(descsOf(in))
	require.NoError(b, err)
	p := atb.VariantPack{In: in}
	for _, d := range descs {
		p.Out = append(p.Out, b.blank(d))
	}
	return p
}

func descsOf(ts []atb.Tensor) []atb.Desc {
	ds := make([]atb.Desc, len(ts))
	for i := range ts {
		ds[i] = ts[i].Desc
	}
	return ds
}

// setup sets up, checks the workspace plan and returns a poisoned workspace of
// the very size asked for.
func (b *bed) setup(o *atb.Op, p atb.VariantPack) atb.Buffer {
	b.Helper()
	n, err := o.Setup(p, b.c)
	require.NoError(b, err)
	require.NoError(b, o.Workspace().Validate(o.Graph()))
	if n == 0 {
		return atb.Buffer{}
	}
	return b.area(n)
}

func (b *bed) execute(o *atb.Op, p atb.VariantPack, ws atb.Buffer) {
	b.Helper()
	require.NoError(b, o.Execute(p, ws, b.c))
}

func (b *bed) sync() {
	b.Helper()
	require.NoError(b, b.c.Synchronize(b.Context()))
}

// call is an operation with the tensors of one call.
type call struct {
	*bed
	op   *atb.Op
	pack atb.VariantPack
	ws   atb.Buffer
}

// ready makes an operation and sets it up.
func (b *bed) ready(s atb.Spec, in ...operand) *call {
	b.Helper()
	o := b.op(s)
	p := b.pack(o, b.putAll(in)...)
	return &call{b, o, p, b.setup(o, p)}
}

// again executes the call and returns output 0.
func (c *call) again() []float64 {
	c.Helper()
	c.execute(c.op, c.pack, c.ws)
	return c.out(0)
}

// out waits and returns an output.
func (c *call) out(i int) []float64 {
	c.Helper()
	c.sync()
	return valuesOf(c.pack.Out[i])
}

// run does a whole call and returns output 0.
func (b *bed) run(s atb.Spec, in ...operand) []float64 {
	b.Helper()
	return b.ready(s, in...).again()
}

// images returns the bytes of all outputs and of all inputs on the device, which
// some operations update.
func (c *call) images() [][]byte {
	c.Helper()
	c.sync()
	var all [][]byte
	for _, ts := range [...][]atb.Tensor{c.pack.Out, c.pack.In} {
		for i := range ts {
			all = append(all, bytes.Clone(ts[i].Data.Bytes()))
		}
	}
	return all
}

// refill writes the inputs, which some operations update, and poisons the
// outputs.
func (c *call) refill(in []operand) {
	for i, o := range in {
		copy(c.pack.In[i].Data.Bytes(), o.data)
	}
	for _, y := range c.pack.Out {
		fill(y.Data, poison)
	}
}

// cold runs a call on a context of its own and returns its images.
func cold(t testing.TB, s atb.Spec, in ...operand) [][]byte {
	t.Helper()
	c := newBed(t).ready(s, in...)
	c.execute(c.op, c.pack, c.ws)
	return c.images()
}

// hold makes a stream of the context wait until release is called.
func (b *bed) hold(stream int) (release func()) {
	b.Helper()
	e, err := b.dev.NewEvent()
	require.NoError(b, err)
	s, err := b.c.Stream(stream)
	require.NoError(b, err)
	require.NoError(b, s.Wait(e))
	gate, err := b.dev.NewStream()
	require.NoError(b, err)
	return func() {
		assert.NoError(b, gate.Record(e))
		assert.NoError(b, gate.Close())
	}
}

// event makes an event of the device, closed with the test.
func (b *bed) event() (device.Event, error) {
	e, err := b.dev.NewEvent()
	if err == nil {
		b.Cleanup(func() { assert.NoError(b, e.Close()) })
	}
	return e, err
}

// within fails the test when f takes longer than five seconds.
func (b *bed) within(f func() error) {
	b.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		require.NoError(b, err)
	case <-time.After(5 * time.Second):
		require.FailNow(b, "blocked for five seconds")
	}
}

// on makes a call of an operation that is there, not set up.
func (b *bed) on(o *atb.Op, in ...operand) *call {
	b.Helper()
	return &call{bed: b, op: o, pack: b.pack(o, b.putAll(in)...)}
}

// areaLike returns another poisoned area of the size of one.
func (b *bed) areaLike(m atb.Buffer) atb.Buffer {
	b.Helper()
	if m.IsNil() {
		return m
	}
	return b.area(m.Size())
}
