package operation_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/operation"
	"goatb/tensor"
	"goatb/tiling/sink"
	"goatb/tiling/sink/argsformat"
)

// sinkRun sets a graph of one sunk operation up, y = sunk(2*x, n) + x, and executes
// it once.
func sinkRun(b *bed) (*operation.Op, operation.VariantPack, device.Buffer) {
	o := sunkGraph(b, sunk{})
	p := b.pack(o, b.f32([]float32{1, 2}), host(3, 4))
	ws := b.setup(o, p)
	b.execute(o, p, ws)
	require.Equal(b, 3+expect(3, 4), b.values(p.Out[0])[0])
	return o, p, ws
}

// (a), (b): what an Execute emits is the tiling, wait, nops, kernel, update, record
// of the design, on its two streams, with as many nops as the chip fetches.
func TestConformList(t *testing.T) {
	for chip, nops := range map[string]int{"310P-design": 5, "910B": 8, "310P": 10} {
		b := &bed{TB: t, dev: cpuDevice(t, cpu.WithPrefetch(nops))}
		b.c = b.context(atbctx.WithPolicy("device-sink"), atbctx.WithSoc(chip))
		o, _, _ := sinkRun(b)
		list := o.Capture().Plan.Segments[0].List
		var text strings.Builder
		require.NoError(t, list.WriteText(&text))
		want := []string{
			"stream 0 (main) VECTOR_ALL_KERNEL op 0 {i0}{o0}{ws0}{t} block_dim=1",
			"stream 1 (tiling) PREPROCESS_KERNEL op 1 AI_CPU test/sunk RunAicpuRpcSrvLaunch {tiling_context}{*op_type}{}",
			"stream 0 (main) EVENT_WAIT op 1 event 0",
		}
		for range nops {
			want = append(want, "stream 0 (main) NOP op 1")
		}
		want = append(want,
			"stream 0 (main) VECTOR_ALL_KERNEL op 1 {i0}{o0}{ws0}{tiling_context.tiling_data} block_dim=0xFFFFFFFF",
			fmt.Sprintf("stream 1 (tiling) UPDATE op 1 task %d (stream 0) {tiling_context.tiling_key}{tiling_context.block_dim}", 3+nops),
			"stream 1 (tiling) EVENT_RECORD op 1 event 0",
			"stream 0 (main) VECTOR_ALL_KERNEL op 2 {i0}{i1}{o0}{ws0}{t} block_dim=1",
			"stream 1 (tiling) EVENT_RECORD op 1 event 1",
			"stream 0 (main) EVENT_WAIT op 1 event 1",
		)
		for i := range want {
			want[i] = fmt.Sprintf("%d %s", i, want[i])
		}
		assert.Equal(t, strings.Join(want, "\n")+"\n", text.String(), chip)
	}
}

// (b): in every execution the kernel that makes the values comes before the tiling,
// and that before its update, record, wait, nops and kernel, while the main stream
// goes on with what does not wait. The simulated device tells when each ran.
func TestConformOrder(t *testing.T) {
	p, err := profile.ByName("ascend910b")
	require.NoError(t, err)
	rec := trace.New("order", 0)
	dev, err := sim.New(p, sim.WithRecorder(rec))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	b := &bed{TB: t, dev: dev}
	b.c = b.context(atbctx.WithPolicy("device-sink"))
	o := madeGraph(b, sunk{}, 0)
	pack := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4), b.i32(1, 1))
	ws := b.setup(o, pack)
	for range 3 {
		rec.Reset()
		b.execute(o, pack, ws)
		require.Equal(t, 3+expect(3, 4, 1, 1), b.values(pack.Out[0])[0])
		// find returns the n-th task of a kind that a node has.
		find := func(kind, node string, n int) trace.Task {
			t.Helper()
			for _, x := range rec.Tasks() {
				if x.Kind == kind && x.Engine == "" && x.Label != nil && x.Label.Node == node {
					if n--; n < 0 {
						return x
					}
				}
			}
			require.Fail(t, "no such task", "%s of %s", kind, node)
			return trace.Task{}
		}
		const node = "2_SunkOperation"
		tiling, kernel := find("preprocess", node, 0), find("launch", node, 0)
		order := []trace.Task{find("launch", "0_ElewiseOperation", 0), tiling, find("update", node, 0), find("record", node, 0)}
		for i := 1; i < len(order); i++ {
			assert.False(t, order[i].Start.Before(order[i-1].End), "%s before the end of %s", order[i].Kind, order[i-1].Kind)
		}
		wait := find("wait", node, 1) // the first is that of the tiling
		assert.True(t, wait.End.After(order[3].End), "a wait ends when its event was recorded")
		assert.True(t, kernel.Start.After(wait.End), "nops lie between")
		assert.False(t, kernel.Pending, "the kernel ran with what its tiling says")
		assert.True(t, find("launch", "1_ElewiseOperation", 0).Start.Before(tiling.End), "the main stream went on")
	}
}

// (c): the formats that an Execute emits are those of the design, and reading and
// writing them changes nothing.
func TestConformFormats(t *testing.T) {
	want := map[string][]string{
		"update": {"{tiling_context}{*op_type}{}", "{tiling_context.tiling_key}{tiling_context.block_dim}", "{i0}{o0}{ws0}{tiling_context.tiling_data}"},
		"ffts":   {"{tiling_context}{*op_type}{}", "{tiling_context.tiling_key}{tiling_context.block_dim}", "{i0}{o0}{ws0}{tiling_context.tiling_data}"},
		"superkernel": {
			"{skn1tiling_context}{skn1*op_type}{skn1event_addr0*}",
			"{skn0i0}{skn0o0}{skn0ws0}{skn0t}{skn1i0}{skn1o0}{skn1ws0}{skn1tiling_context.tiling_data}{skn1tiling_context.tiling_key}{skn1tiling_context.block_dim}{skn1event_addr0*}{skn2i0}{skn2i1}{skn2o0}{skn2ws0}{skn2t}",
		},
	}
	for form, formats := range want {
		b := sinkBed(t, form)
		o, _, _ := sinkRun(b)
		list, _ := o.Capture().Graph.Loaded(0)
		seen := map[string]bool{}
		for i := range list.Tasks {
			f, err := argsformat.Parse(list.Tasks[i].Format)
			require.NoError(t, err)
			assert.Equal(t, list.Tasks[i].Format, f.String(), form)
			seen[f.String()] = true
		}
		for _, f := range formats {
			assert.True(t, seen[f], "%s: want %s among %v", form, f, seen)
		}
	}
}

// unaware is a device that does not say how far it fetches.
type unaware struct{ device.ModelDevice }

// Capability hides the prefetch depth.
func (u unaware) Capability(c device.Capability) (int64, error) {
	if c == device.CapPrefetch {
		return 0, nil
	}
	return u.ModelDevice.Capability(c)
}

// (d): where the device fetches further than the nops reach, a kernel runs with the
// variant of the execution before; where it does not, never. That a device which
// says how far it fetches is not tiled on is tested with the gates.
func TestConformPrefetch(t *testing.T) {
	for depth, stale := range map[float64]bool{0: false, 8: false, 9: true, 20: true} {
		p, err := profile.ByName("ascend910b")
		require.NoError(t, err)
		p, err = p.With("prefetch", depth)
		require.NoError(t, err)
		dev, err := sim.New(p)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, dev.Close()) })
		b := &bed{TB: t, dev: unaware{dev}}
		b.c = b.context(atbctx.WithPolicy("device-sink"))
		o, pack, ws := sinkRun(b) // an odd sum: variant 1
		for _, n := range [][]int32{{1, 1}, {2, 1}, {4, 4}} {
			key := float32(1000)
			if n[0]%2 == n[1]%2 {
				key = 0
			}
			pack.In[1] = host(n...)
			b.execute(o, pack, ws)
			got := b.values(pack.Out[0])[0]
			right := 3 + expect(n...)
			if !stale {
				assert.Equal(t, right, got, "depth %v", depth)
				continue
			}
			assert.Equal(t, right-key+(1000-key), got, "depth %v: the data are new, the variant is that of the execution before", depth)
		}
	}
}

// (f): a record serves one execution. Were it left, the next one would run before
// its tiling on a device that takes the main stream first.
func TestConformEventIsReset(t *testing.T) {
	for _, form := range patched {
		b := &bed{TB: t, dev: simDevice(t)}
		b.c = b.context(atbctx.WithPolicy("device-sink"), atbctx.WithSinkForm(form))
		o, p, ws := sinkRun(b)
		outs := make([]device.Tensor, 6)
		for i := range outs { // all enqueued before any is looked at
			outs[i] = b.empty(p.Out[0].Desc)
			p.Out[0], p.In[1] = outs[i], host(int32(i), 7)
			b.execute(o, p, ws)
		}
		for i := range outs {
			assert.Equal(t, 3+expect(int32(i), 7), b.values(outs[i])[0], "%s %d", form, i)
		}
	}
}

// (h), (i): the bytes of the tiling context that an Execute makes.
func TestConformContext(t *testing.T) {
	b := sinkBed(t, "update")
	o, _, _ := sinkRun(b)
	list, _ := o.Capture().Graph.Loaded(0)
	var task, update *device.Task
	for i := range list.Tasks {
		switch list.Tasks[i].Kind {
		case device.PreprocessTask:
			task = &list.Tasks[i]
		case device.UpdateTask:
			update = &list.Tasks[i]
		}
	}
	require.NotNil(t, task)
	require.NotNil(t, update)
	whole := task.Preprocess.Outputs[0].Buffer
	ctx, args := whole.Bytes(), task.Preprocess.Inputs[0].Buffer.Bytes()
	le := binary.LittleEndian
	const name, kind, tiling = len("1_SunkOperation"), len("test/sunk"), 16
	word := func(at int64) uint64 { return le.Uint64(ctx[at:]) }

	assert.Equal(t, uint64(tiling), word(0), "capacity: the tiling, a multiple of 8")
	assert.Equal(t, uint64(tiling), word(8), "and it is full")
	assert.Equal(t, uint64(64), word(16)&(1<<40-1), "data begin behind a header of 64 bytes")
	assert.Equal(t, []int64{2, 7}, device.View[int64](ctx[64:64+tiling]), "2 elements, 3+4")
	vector := int64(64 + tiling)
	assert.Equal(t, uint64(16), word(vector), "room for 16 workspaces")
	assert.Equal(t, uint64(0), word(vector+8), "of which none is used")
	region := vector + 64 + 16*8
	const io = 3 // x, n, y
	for i, operand := range []string{"x", "y"} {
		at := region + int64(i)*752
		assert.Equal(t, []uint64{1, 2}, []uint64{word(at), word(at + 8)}, "%s has its shape", operand)
		assert.Zero(t, word(at+640), "%s has no data", operand)
	}
	c := int64(io + 11 + 4)
	tiled := int64(name+1+kind+1) + io*752 + 48 + 8*c + (16+256)*c
	info := int64(len(ctx)) - region - (tiled+7)/8*8
	assert.Positive(t, info, "the compute node info")
	key, blocks := update.Update.Patch.Key.Buffer, update.Update.Patch.Blocks.Buffer
	assert.Zero(t, (key.Offset()-whole.Offset())%128, "cells are aligned to 128 bytes")
	assert.Equal(t, int64(128), blocks.Offset()-key.Offset(), "and that far apart")
	assert.Equal(t, []uint64{1, 1}, []uint64{le.Uint64(key.Bytes()), uint64(le.Uint32(blocks.Bytes()))})
	assert.LessOrEqual(t, key.Offset()-whole.Offset()+11*128, int64(len(ctx)), "11 outputs")

	slot := int64(1392)
	assert.Equal(t, 20+slot+3*8, int64(len(args)), "head, one tensor, three words")
	assert.Equal(t, uint32(len(args)), le.Uint32(args))
	assert.Equal(t, uint32(3), le.Uint32(args[4:]))
	at := 20 + 640
	assert.Equal(t, uint64(1), le.Uint64(args[at:]), "rank of n at 660")
	assert.NotZero(t, le.Uint64(args[at+640:]), "n has data")
	assert.Equal(t, uint64(8), le.Uint64(args[at+648:]))
}

// (e), (j): variant, block dim and data follow the memory that a tiling reads,
// wherever it lies, with no call of the host but the Execute.
func TestConformMovedValues(t *testing.T) {
	for _, form := range patched {
		b := sinkBed(t, form)
		o := b.op(updating{})
		p := b.pack(o, b.f32([]float32{1, 2}), b.i32(3, 4))
		ws := b.setup(o, p)
		b.execute(o, p, ws)
		b.sync()
		before := b.c.Stats()
		for i := range int32(4) {
			p.In[1], p.Out[1] = b.i32(i, 8), b.empty(tensor.Of(tensor.Int32, 2))
			b.execute(o, p, ws)
			assert.Equal(t, 1+expect(i, 8), b.values(p.Out[0])[0], form)
		}
		after := b.c.Stats()
		assert.Equal(t, before.HostTilings, after.HostTilings)
		assert.Equal(t, before.Captures, after.Captures)
		assert.Equal(t, int64(4), after.DeviceTilings-before.DeviceTilings)
	}
}

// Dumps show 0xFFFFFFFF for the block dim of a kernel that is tiled on the device
// until its update, and the block dim in use after it.
func TestConformBlockDimPlaceholder(t *testing.T) {
	b := sinkBed(t, "update")
	o, _, _ := sinkRun(b)
	list, states := o.Capture().Graph.Loaded(0)
	var before, after strings.Builder
	require.NoError(t, list.Dump(&before, nil))
	require.NoError(t, list.Dump(&after, states))
	assert.Equal(t, 1, strings.Count(before.String(), "0xFFFFFFFF"))
	assert.NotContains(t, after.String(), "0xFFFFFFFF")
	assert.Equal(t, uint32(sink.BlockDimPending), uint32(device.BlocksPending))
	for i := range list.Tasks {
		if k := list.Tasks[i].Kernel; k != nil && !k.Tiling.IsNil() {
			assert.Equal(t, device.TaskState{Blocks: 1, Key: 1, Runs: 1}, states[i], "3+4 is odd")
		}
	}
}
