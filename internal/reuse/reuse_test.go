package reuse

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
)

var policies = []string{"kernel-follow", "overall", "multi-stream", "device-sink"}

// switches are the settings under which reuse must not show.
var switches = []struct {
	name string
	opts []atb.Option
}{
	{"all on", nil},
	{"no tiling caches", []atb.Option{atb.WithTilingCaches(0)}},
	{"local tiling cache alone", []atb.Option{atb.WithTilingCaches(1)}},
	{"global tiling cache alone", []atb.Option{atb.WithTilingCaches(2)}},
	{"no setup reuse", []atb.Option{atb.WithSetupReuse(false)}},
	{"no runner pool", []atb.Option{atb.WithVariable("ATB_RUNNER_POOL_SIZE", "0")}},
	{"no reuse at all", []atb.Option{atb.WithTilingCaches(0), atb.WithSetupReuse(false), atb.WithVariable("ATB_RUNNER_POOL_SIZE", "0")}},
}

func noEnv(string) (string, bool) { return "", false }

func newDevice(t *testing.T) device.Device {
	t.Helper()
	d, err := cpu.New(cpu.WithWorkers(2))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// guard is the number of bytes before and behind each piece of memory, and the
// alignment of workspaces.
const (
	guard  = 512
	canary = 0xa7
	nan    = 0xff // NaN in every float type, a wild index, a wild length
)

// bench runs calls on one context and keeps their memory.
type bench struct {
	*testing.T
	c     *atb.Context
	op    *atb.Op
	areas []atb.Buffer
	// done counts the areas of finished calls: full of NaN.
	done int
}

func newBench(t *testing.T, d device.Device, s atb.Spec, opts ...atb.Option) *bench {
	t.Helper()
	c, err := atb.NewContext(d, append([]atb.Option{atb.WithEnv(noEnv)}, opts...)...)
	require.NoError(t, err)
	b := &bench{T: t, c: c}
	b.open(s)
	return b
}

func (b *bench) open(s atb.Spec) {
	b.Helper()
	var err error
	b.op, err = atb.New(s)
	require.NoError(b, err)
}

func (b *bench) close() {
	b.Helper()
	assert.Empty(b, b.c.Stats().FallbackReasons, "whatever reads values can be tiled on the device")
	require.NoError(b, b.op.Close())
	for _, m := range b.areas {
		require.NoError(b, b.c.Free(m))
	}
	require.NoError(b, b.c.Close())
}

func fill(m []byte, v byte) {
	for i := range m {
		m[i] = v
	}
}

// area returns NaN-filled memory between canaries.
func (b *bench) area(size int64) atb.Buffer {
	b.Helper()
	m, err := b.c.Alloc(size + 2*guard)
	require.NoError(b, err)
	fill(m.Bytes(), canary)
	b.areas = append(b.areas, m)
	fill(m.At(guard, size).Bytes(), nan)
	return m.At(guard, size)
}

// finish fills the memory of the calls so far with NaN, after a check that
// nothing touched what earlier calls left or what lies beside.
func (b *bench) finish() {
	b.Helper()
	for i, m := range b.areas {
		mem := m.Bytes()
		n := len(mem) - guard
		if !uniform(mem[:guard], canary) || !uniform(mem[n:], canary) {
			require.Fail(b, "memory beside a tensor or workspace was written")
		}
		if i < b.done && !uniform(mem[guard:n], nan) {
			require.Fail(b, "memory of an earlier call was written")
		}
		fill(mem[guard:n], nan)
	}
	b.done = len(b.areas)
}

func uniform(mem []byte, v byte) bool {
	return len(mem) == 0 || mem[0] == v && bytes.Equal(mem[1:], mem[:len(mem)-1])
}

// pack puts operands into fresh memory and makes outputs.
func (b *bench) pack(r *row, in []operand) atb.VariantPack {
	b.Helper()
	var p atb.VariantPack
	var descs []atb.Desc
	for _, o := range in {
		x := atb.Tensor{Desc: o.desc, Data: b.area(o.desc.Bytes())}
		copy(x.Data.Bytes(), o.data)
		if o.host {
			x.Host = slices.Clone(o.data)
		}
		p.In, descs = append(p.In, x), append(descs, o.desc)
	}
	outs, err := b.op.InferShape(descs)
	require.NoError(b, err)
	for i, d := range outs {
		x := atb.Tensor{Desc: d}
		if from, ok := r.inPlace[i]; ok {
			x.Data = p.In[from].Data
		} else {
			x.Data = b.area(d.Bytes())
		}
		p.Out = append(p.Out, x)
	}
	return p
}

// setup sets the operation up and returns the workspace's size.
func (b *bench) setup(p atb.VariantPack) int64 {
	b.Helper()
	n, err := b.op.Setup(p, b.c)
	require.NoError(b, err)
	return n
}

// launch executes the call in a workspace and returns the bytes of outputs and
// inputs.
func (b *bench) launch(p atb.VariantPack, workspace atb.Buffer) [][]byte {
	b.Helper()
	require.NoError(b, b.op.Execute(p, workspace, b.c))
	require.NoError(b, b.c.Synchronize(b.Context()))
	var got [][]byte
	for _, x := range slices.Concat(p.Out, p.In) {
		got = append(got, slices.Clone(x.Data.Bytes()))
	}
	return got
}

// execute launches the call in a fresh workspace; then its memory is filled with
// NaN, host data too.
func (b *bench) execute(p atb.VariantPack, workspace int64) [][]byte {
	b.Helper()
	got := b.launch(p, b.area(workspace))
	for _, x := range p.In {
		fill(x.Host, nan)
	}
	b.finish()
	return got
}

// refill puts operands into the memory of a call that is not finished.
func refill(p atb.VariantPack, in []operand) {
	for _, x := range p.Out {
		fill(x.Data.Bytes(), nan)
	}
	for i, x := range p.In {
		copy(x.Data.Bytes(), in[i].data)
		copy(x.Host, in[i].data)
	}
}

func (b *bench) run(r *row, in []operand) [][]byte {
	b.Helper()
	p := b.pack(r, in)
	return b.execute(p, b.setup(p))
}

// cold runs operands on a context of their own without any reuse.
func cold(t *testing.T, d device.Device, r *row, s atb.Spec, in []operand) [][]byte {
	t.Helper()
	b := newBench(t, d, s, atb.WithTilingCaches(0), atb.WithSetupReuse(false))
	defer b.close()
	return b.run(r, in)
}

// call is a row with operands and the result of a cold run.
type call struct {
	in   []operand
	want [][]byte // outputs, then inputs
}

// script holds the calls of a row, each with its cold result.
type script struct {
	first, again, stale, small, large call
	other                             call
}

func newScript(t *testing.T, d device.Device, r *row) *script {
	t.Helper()
	at := func(spec atb.Spec, n int64, device, host uint64) call {
		in := r.in(newSource(device, host), n)
		return call{in, cold(t, d, r, spec, in)}
	}
	s := &script{
		first: at(r.spec, 3, 1, 1), again: at(r.spec, 3, 2, 2), stale: at(r.spec, 3, 3, 1),
		small: at(r.spec, 2, 4, 4), large: at(r.spec, 5, 5, 5),
	}
	require.NotEqual(t, s.first.want[0], s.again.want[0], "other data make no difference")
	if r.other != nil {
		s.other = call{s.first.in, cold(t, d, r, r.other, s.first.in)}
		require.NotEqual(t, s.first.want, s.other.want, "other parameters make no difference")
	}
	return s
}

// TestReuse runs the whole table under every policy and switch.
func TestReuse(t *testing.T) {
	d := newDevice(t)
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			s := newScript(t, d, &r)
			for _, sw := range switches {
				for _, policy := range policies {
					b := newBench(t, d, r.spec, append(sw.opts, atb.WithPolicy(policy))...)
					x := &played{b, &r, sw.name + ", " + policy}
					x.calls(s, policy)
					x.parameters(s)
					x.pool(s)
					b.close()
				}
			}
		})
	}
}

// played is a script under one policy and switch.
type played struct {
	*bench
	r     *row
	where string
}

func (x *played) check(what string, c call) {
	x.Helper()
	require.Equal(x, c.want, x.run(x.r, c.in), "%s: %s", x.where, what)
}

// calls changes data, addresses, host values, policy and shapes.
func (x *played) calls(s *script, policy string) {
	x.check("first call", s.first)
	x.check("other data, addresses, workspace and host values", s.again)
	x.check("the first data elsewhere", s.first)
	p := x.pack(x.r, s.first.in)
	size := x.setup(p)
	x.execute(p, size)
	require.Equal(x, s.stale.want, x.execute(x.pack(x.r, s.stale.in), size), "%s: other data without a setup", x.where)
	x.oneThingAtATime(s)
	for _, other := range policies {
		require.NoError(x, x.c.SetPolicy(other))
		x.check("under "+other, s.again)
		p := x.pack(x.r, s.stale.in)
		size := x.setup(p)
		require.NoError(x, x.c.SetPolicy(policy))
		require.Equal(x, s.stale.want, x.execute(p, size), "%s: set up under %s", x.where, other)
	}
	x.check("smaller", s.small)
	x.check("larger", s.large)
	x.check("the first shapes again", s.first)
}

// oneThingAtATime keeps the tensors and changes the workspace, then the data and
// host values in them.
func (x *played) oneThingAtATime(s *script) {
	x.Helper()
	p := x.pack(x.r, s.first.in)
	size := x.setup(p)
	old := x.area(size)
	require.Equal(x, s.first.want, x.launch(p, old), x.where)
	fill(old.Bytes(), nan)
	refill(p, s.first.in)
	ws := x.area(size)
	require.Equal(x, s.first.want, x.launch(p, ws), "%s: another workspace alone", x.where)
	require.True(x, uniform(old.Bytes(), nan), "%s: the first workspace was written", x.where)
	refill(p, s.again.in)
	x.setup(p)
	require.Equal(x, s.again.want, x.launch(p, ws), "%s: other data and host values alone", x.where)
	x.finish()
}

// parameters changes them and takes them back.
func (x *played) parameters(s *script) {
	if x.r.other == nil {
		return
	}
	if len(x.r.other.Signature().Out) == len(x.r.spec.Signature().Out) {
		require.NoError(x, x.op.Update(x.r.other))
		x.check("other parameters", s.other)
		require.NoError(x, x.op.Update(x.r.spec))
		x.check("the first parameters again", s.first)
	}
}

// pool closes the operation and makes new ones, which take its runner.
func (x *played) pool(s *script) {
	next := func(spec atb.Spec) {
		x.Helper()
		require.NoError(x, x.op.Close())
		x.open(spec)
	}
	before := x.c.Stats().PoolHits
	next(x.r.spec)
	x.check("an operation with equal parameters", s.again)
	if x.c.Config().RunnerPool > 0 {
		assert.Equal(x, before+1, x.c.Stats().PoolHits, "%s: its runner was there", x.where)
	}
	if x.r.other != nil {
		next(x.r.other)
		x.check("an operation with other parameters", s.other)
	}
	next(x.r.spec)
	x.check("and one with the first ones, of another size", s.large)
}
