package image

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/device"
	"goatb/kernel"
	"goatb/tensor"
	"goatb/tiling/sink/argsformat"
)

// params has padding and a small field, so that its bytes have holes.
type params struct {
	N     int64
	Scale float32
	Flag  bool
}

type plan struct {
	Sum   int64
	Scale float32
	Flag  bool
	DType tensor.DType
}

// sums is a kernel whose tiling reads two values and everything else that a
// problem has.
var sums = kernel.Define(kernel.Def[params, plan]{
	Name: "sums/go", TileOn: kernel.OnHost | kernel.OnAICPU,
	Scratch: func(p *kernel.Problem, a params) int64 { return a.N * int64(p.Machine.Cores) * 32 },
	Tail:    func(_ *kernel.Problem, a params) int { return int(a.N&63) + 16 },
	Tile: func(p *kernel.Problem, a params, t *plan, tail []int64) (kernel.Grid, error) {
		t.Scale, t.Flag = a.Scale, a.Flag
		for _, v := range p.Values {
			for i, x := range v {
				t.Sum += x
				tail[i%len(tail)] += x
			}
		}
		last := tail[len(tail)-16:]
		for i, d := range [][]tensor.Desc{p.In, p.Val, p.Out} {
			for j := range d {
				last[i] += d[j].Bytes()*int64(j+1) + int64(d[j].Format)<<40
			}
			last[i+3] = int64(len(d))
		}
		t.DType = p.In[0].DType
		last[8], last[9], last[10] = p.Machine.L1, p.Machine.L2, p.Machine.L3
		if p.Options.ShuffleK {
			last[11] = 1
		}
		if p.Options.QuantMinNeg127 {
			last[12] = 1
		}
		return kernel.Grid{Key: uint64(t.Sum), Blocks: p.Machine.Cores}, nil
	},
	Run: func(*kernel.Args, int, *plan, []int64) error { return nil },
})

// problem has an absent input, an output in another layout, and values of two
// types.
func problem() *kernel.Problem {
	nz := tensor.Of(tensor.Float16, 1, 2, 16, 16)
	nz.Format = tensor.FractalNZ
	return &kernel.Problem{
		In:      []tensor.Desc{tensor.Of(tensor.BFloat16, 3, 5), {}, tensor.Of(tensor.Int8, 7)},
		Val:     []tensor.Desc{tensor.Of(tensor.Int32, 4), tensor.Of(tensor.Int64, 2, 1)},
		Out:     []tensor.Desc{nz},
		Params:  params{N: 5, Scale: 0.5, Flag: true},
		Machine: kernel.Machine{Cores: 6, L1: 1 << 15, L2: 1 << 20, L3: 1 << 25, Accelerator: true},
		Options: kernel.Options{QuantMinNeg127: true},
	}
}

var values = [][]int64{{1, 2, 3, -4}, {1 << 40, 7}}

// Windows of the bed's task.
const (
	argsWindow = iota
	platformWindow
	valueWindow
)

const (
	contextWindow = iota
	logWindow
	flagWindow
)

// bed is the memory of one tiling task, as a device has it.
type bed struct {
	spec   *Spec
	layout *Layout
	args   *Args
	mem    Memory
}

// block makes aligned memory.
func block(n int64) []byte {
	m := device.BytesOf(make([]uint64, n/8+17))
	for !device.Wrap(m).Aligned(BaseAlign) {
		m = m[8:]
	}
	return m[:n:n]
}

// newBed makes context and arguments of a kernel's problem. change may alter the
// spec before.
func newBed(t testing.TB, k *kernel.Kernel, p *kernel.Problem, custom bool, change func(*Spec)) *bed {
	t.Helper()
	s, err := FromKernel("layer/sums", k, p)
	require.NoError(t, err)
	if change != nil {
		change(s)
	}
	text := "{tiling_context}{*op_type}{event_addr0*}"
	if custom {
		text += "{ws0*}"
	}
	format, err := argsformat.Parse(text)
	require.NoError(t, err)
	b := &bed{spec: s, args: NewArgs(s, format, custom)}
	b.layout, err = NewLayout(s)
	require.NoError(t, err)
	b.mem.Out = [][]byte{block(b.layout.Size), block(64), block(8)}
	b.mem.In = [][]byte{block(b.args.Size()), block(PlatformBytes)}
	PutPlatform(b.mem.In[platformWindow], p.Machine)
	base := OutputAt(contextWindow, 0)
	var read, data []Address
	for i := range b.args.Read {
		at, err := b.args.TensorAt(i)
		require.NoError(t, err)
		read = append(read, InputAt(argsWindow, at))
		data = append(data, InputAt(valueWindow+i, 0))
		b.mem.In = append(b.mem.In, block(b.args.Read[i].Bytes()))
	}
	require.NoError(t, b.layout.Encode(b.mem.Out[contextWindow], base, s, read, InputAt(platformWindow, 0)))
	w := Words{Published: b.layout.Published(base), Notify: OutputAt(flagWindow, 0)}
	if custom {
		w.Log, w.LogBytes = OutputAt(logWindow, 0), 64
	}
	require.NoError(t, b.args.Encode(b.mem.In[argsWindow], data, &w))
	return b
}

// setValues stores the values that the tiling reads.
func (b *bed) setValues(values [][]int64) {
	for i, v := range values {
		for j, x := range v {
			if b.args.Read[i].DType == tensor.Int32 {
				device.View[int32](b.mem.In[valueWindow+i])[j] = int32(x)
			} else {
				device.View[int64](b.mem.In[valueWindow+i])[j] = x
			}
		}
	}
}

// run runs the task as a device does.
func (b *bed) run(f *Functions) error {
	return f.Entry().Run(&device.CPUArgs{Inputs: b.mem.In, Outputs: b.mem.Out})
}

// result is what the tiling left in the context.
func (b *bed) result() (data []byte, grid kernel.Grid) {
	ctx := b.mem.Out[contextWindow]
	n := le.Uint64(ctx[8:])
	return ctx[DataAt : DataAt+n], kernel.Grid{Key: le.Uint64(ctx[b.layout.KeyAt():]), Blocks: int(le.Uint32(ctx[b.layout.BlockDimAt():]))}
}

// flag is the memory flag of the task.
func (b *bed) flag() uint64 { return le.Uint64(b.mem.Out[flagWindow]) }

// hosted is the tiling on the host.
func hosted(t testing.TB, k *kernel.Kernel, p *kernel.Problem, values [][]int64) ([]byte, kernel.Grid) {
	q := *p
	q.Values = values
	data := block(int64(k.TilingSize(&q)))
	g, err := k.Tile(&q, data)
	require.NoError(t, err)
	return data, g
}
