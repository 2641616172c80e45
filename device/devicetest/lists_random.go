package devicetest

import (
	"fmt"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"goatb/device"
)

func randomListChecks() []listCheck {
	var checks []listCheck
	for seed := range uint64(8) {
		o := listDefaults()
		o.Prefetch = int(seed)
		checks = append(checks, listCheck{fmt.Sprintf("seed %d", seed), o, func(b *listBed) { checkRandomList(b, seed) }})
	}
	return checks
}

// randomList is a list over cells of one byte, and what it makes of them.
type randomList struct {
	*device.TaskList
	b       *listBed
	rng     *rand.Rand
	cells   int
	touched []device.StreamID // stream that last wrote or read each cell
	steps   []func(cells []byte)
}

func (r *randomList) cell(i int) device.Address {
	return window(device.WorkspaceMemory, i%2, int64(i/2), 1)
}

// order makes stream `to` wait for all earlier work of the streams that touched
// the cells.
func (r *randomList) order(to device.StreamID, cells ...int) {
	for _, c := range cells {
		if from := r.touched[c]; from != to {
			e := r.NewEvent()
			r.Add(device.Task{Kind: device.EventRecordTask, Stream: from, Event: e})
			r.Add(device.Task{Kind: device.EventWaitTask, Stream: to, Event: e})
		}
		r.touched[c] = to
	}
}

// step adds one random task: an addition, a copy, a sunk addition or nops.
func (r *randomList) step(streams []device.StreamID, attached []device.StreamID) {
	i := r.rng.IntN(len(streams))
	on, x, y, v := streams[i], r.rng.IntN(r.cells), r.rng.IntN(r.cells), byte(r.rng.IntN(256))
	switch kind := r.rng.IntN(10); {
	case kind < 4:
		r.order(on, x, y)
		r.Add(addTask(on, r.cell(y), r.cell(x), v))
		r.steps = append(r.steps, func(c []byte) { c[y] = c[x] + v })
	case kind < 6 && x != y:
		r.order(on, x, y)
		r.Add(device.Task{Kind: device.CopyTask, Stream: on, Copy: &device.CopyAddresses{Dst: r.cell(y), Src: r.cell(x)}})
		r.steps = append(r.steps, func(c []byte) { c[y] = c[x] })
	case kind < 9:
		r.sunkAdd(on, attached[i], x, y)
	default:
		for range r.rng.IntN(4) {
			r.Add(device.Task{Kind: device.NopTask, Stream: on})
		}
	}
}

// sunkAdd adds a value to cell y that a tiling function makes of cell x.
func (r *randomList) sunkAdd(on, attached device.StreamID, x, y int) {
	o := r.b.operation("sunk")
	r.order(attached, x)
	r.order(on, y)
	variant := func(k uint64) *device.Program {
		return &device.Program{Name: "test/sunk", Run: func(a *device.Args, block int) error {
			if block == 0 {
				a.Mem(0)[0] += byte(k)*7 + byte(a.Blocks) + a.Tiling[0]
			}
			return nil
		}}
	}
	p := o.patch()
	p.Binary = &device.Binary{Name: "sunk", Variants: []device.Variant{{Key: 1, Program: variant(1)}, {Key: 2, Program: variant(2)}, {Key: 3, Program: variant(3)}}}
	e := r.NewEvent()
	r.Add(device.Task{Kind: device.PreprocessTask, Stream: attached, Label: label("sunk"), Preprocess: o.preprocess(r.cell(x))})
	r.Add(device.Task{Kind: device.EventWaitTask, Stream: on, Event: e})
	nops, _ := r.b.models.Capability(device.CapPrefetch)
	for range nops {
		r.Add(device.Task{Kind: device.NopTask, Stream: on})
	}
	k := o.kernel(r.cell(y))
	k.Program = variant(loadedKey)
	id := r.Add(device.Task{Kind: device.KernelTask, Stream: on, Label: label("sunk"), Kernel: &k})
	r.Add(device.Task{Kind: device.UpdateTask, Stream: attached, Label: label("sunk"), Update: &device.Update{Target: on, Task: id, Patch: p}})
	r.Add(device.Task{Kind: device.EventRecordTask, Stream: attached, Event: e})
	r.steps = append(r.steps, func(c []byte) {
		key, blocks := tiled(c[x])
		c[y] += byte(key)*7 + byte(blocks) + c[x]
	})
}

// checkRandomList compares random lists with their tasks run one by one.
func checkRandomList(b *listBed, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	r := &randomList{TaskList: &device.TaskList{Name: "random"}, b: b, rng: rng, cells: 12}
	var streams, attached []device.StreamID
	for range 1 + rng.IntN(3) {
		streams, attached = append(streams, r.Bind("main")), append(attached, r.Bind("tiling"))
	}
	r.touched = make([]device.StreamID, r.cells)
	for range 60 {
		r.step(streams, attached)
	}
	m, s := b.load(r.TaskList), b.stream()
	for range 4 {
		want := make([]byte, r.cells)
		ws := [2]device.Buffer{b.alloc(64), b.alloc(64)}
		off := int64(rng.IntN(50))
		for i := range want {
			want[i] = byte(rng.IntN(256))
			ws[i%2].Bytes()[off+int64(i/2)] = want[i]
		}
		for _, step := range r.steps {
			step(want)
		}
		m.replay(s, &device.Refresh{Moves: []device.Relocation{
			{Type: device.WorkspaceMemory, Index: 0, Buffer: ws[0].At(off, 8)}, {Type: device.WorkspaceMemory, Index: 1, Buffer: ws[1].At(off, 8)},
		}})
		s.sync()
		for i := range want {
			require.Equal(b, want[i], ws[i%2].Bytes()[off+int64(i/2)], "cell %d", i)
		}
	}
	require.Equal(b, int64(0), m.Stats().Stale)
}
