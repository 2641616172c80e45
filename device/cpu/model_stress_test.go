package cpu_test

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/device/cpu"
)

var errOdd = errors.New("odd values have no tiling")

// sums is a list that adds its value to itself on two streams, in a kernel whose
// variant adds the tiling key, and fails for odd values.
func sums(d *cpu.Device) (*device.TaskList, error) {
	mem, err := d.Alloc(16)
	if err != nil {
		return nil, err
	}
	l := &device.TaskList{Name: "sums"}
	main, tiling := l.Bind("main"), l.Bind("tiling")
	value, out := device.Address{Type: device.InputMemory, Size: 8}, device.Address{Type: device.OutputMemory, Size: 8}
	variant := func(key uint64) *device.Program {
		return &device.Program{Name: "add", Run: func(a *device.Args, block int) error {
			if block == 0 {
				in := binary.LittleEndian.Uint64(a.Mem(0))
				binary.LittleEndian.PutUint64(a.Mem(1), 2*in+key)
			}
			return nil
		}}
	}
	table := &device.Binary{Name: "add"}
	for key := range uint64(8) {
		table.Variants = append(table.Variants, device.Variant{Key: key, Program: variant(key)})
	}
	patch := device.Patch{Key: device.Absolute(mem.At(0, 8)), Blocks: device.Absolute(mem.At(8, 4)), Binary: table}
	e := l.NewEvent()
	l.Add(device.Task{Kind: device.PreprocessTask, Stream: tiling, Preprocess: &device.Preprocess{
		Engine: device.AICPU, Inputs: []device.Address{value}, Outputs: []device.Address{patch.Key, patch.Blocks},
		Function: &device.Function{Name: "tile", Run: func(a *device.CPUArgs) error {
			v := binary.LittleEndian.Uint64(a.Inputs[0])
			if v%2 == 1 {
				return errOdd
			}
			binary.LittleEndian.PutUint64(a.Outputs[0], v%8)
			binary.LittleEndian.PutUint32(a.Outputs[1], uint32(1+v%3))
			return nil
		}},
	}})
	l.Add(device.Task{Kind: device.EventWaitTask, Stream: main, Event: e})
	for range cpu.DefaultPrefetch {
		l.Add(device.Task{Kind: device.NopTask, Stream: main})
	}
	id := l.Add(device.Task{Kind: device.KernelTask, Stream: main, Kernel: &device.Kernel{Program: variant(0), Blocks: 1, Operands: []device.Address{value, out}, Inputs: 1}})
	l.Add(device.Task{Kind: device.UpdateTask, Stream: tiling, Update: &device.Update{Target: main, Task: id, Patch: patch}})
	l.Add(device.Task{Kind: device.EventRecordTask, Stream: tiling, Event: e})
	return l, nil
}

// TestModelsUnderLoad replays models from several goroutines, each with a stream
// and a model of its own and one that all share. Results and errors have to come
// back to the stream that asked.
func TestModelsUnderLoad(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			d := open(t, append([]cpu.Option{cpu.WithWorkers(2)}, m.opts...)...)
			l, err := sums(d)
			require.NoError(t, err)
			shared, err := d.Load(l)
			require.NoError(t, err)
			rounds := 300
			if testing.Short() {
				rounds = 60
			}
			var all sync.WaitGroup
			for g := range 4 {
				all.Go(func() { replayAtRandom(t, d, shared, uint64(g), rounds) })
			}
			all.Wait()
			st := shared.Stats()
			assert.Positive(t, st.Failures)
			assert.Zero(t, st.Stale)
			require.NoError(t, shared.Unload())
		})
	}
}

func replayAtRandom(t *testing.T, d *cpu.Device, shared device.Model, seed uint64, rounds int) {
	rng := rand.New(rand.NewPCG(seed, 3))
	s, err := d.NewStream()
	if !assert.NoError(t, err) {
		return
	}
	for range rounds {
		l, err := sums(d)
		if !assert.NoError(t, err) {
			return
		}
		model := shared
		if rng.IntN(4) == 0 {
			if model, err = d.Load(l); !assert.NoError(t, err) {
				return
			}
		}
		v := rng.Uint64N(1000)
		if rng.IntN(3) > 0 {
			v &^= 1
		}
		in, out := make([]byte, 8), make([]byte, 8)
		binary.LittleEndian.PutUint64(in, v)
		err = model.Replay(s, &device.Refresh{Moves: []device.Relocation{
			{Type: device.InputMemory, Buffer: device.Wrap(in)}, {Type: device.OutputMemory, Buffer: device.Wrap(out)},
		}})
		if !assert.NoError(t, err) {
			return
		}
		err = s.Synchronize(t.Context())
		if v%2 == 1 {
			assert.ErrorIs(t, err, errOdd)
		} else {
			assert.NoError(t, err)
			assert.Equal(t, 2*v+v%8, binary.LittleEndian.Uint64(out))
		}
		if model != shared {
			assert.NoError(t, model.Unload())
		}
	}
	assert.NoError(t, s.Close())
}
