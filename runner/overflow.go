package runner

import (
	"context"
	"fmt"

	"goatb/device"
	"goatb/kernel"
	"goatb/kernel/overflow"
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// Overflow looks for overflow in every float output of every kernel that
// computes; one that only moves bytes makes none. Each look waits for the
// stream: it is for finding faults.
type Overflow struct {
	Mode overflow.Mode
	// Stop makes a hit an error of Execute, ErrRuntimeFail.
	Stop bool
	// Report is called for each hit; it may be nil.
	Report func(OverflowHit)
	// Flag is the detection tensor: one int32 in device memory.
	Flag device.Buffer
}

// OverflowHit names the place of an overflow.
type OverflowHit struct {
	Op, Node, Kernel string
	// Output is the kernel's output that holds it.
	Output int
	Mode   overflow.Mode
}

// String gives "op: node (kernel) output 0".
func (h OverflowHit) String() string {
	return fmt.Sprintf("%s: %s (%s) output %d", h.Op, h.Node, h.Kernel, h.Output)
}

func (r *Runner) scanOverflow(k int, stream device.Stream) error {
	ks := &r.plan.kernels[k]
	if ks.node.Kernel.Class() == device.Move {
		return nil
	}
	for i, ref := range ks.node.Out {
		if ref == kernelgraph.Absent {
			continue
		}
		d := r.plan.Graph.Tensors[ref].Desc
		if !d.DType.IsFloat() || d.DType == tensor.Float64 {
			continue
		}
		hit, err := r.env.Overflow.scan(stream, r.launches[k].Buffers[len(ks.node.In)+i], d, r.env.Machine)
		if err != nil {
			return ks.label.Place(err)
		}
		if !hit {
			continue
		}
		r.env.Counters.Overflows.Add(1)
		h := OverflowHit{Op: ks.label.Op, Node: ks.label.Node, Kernel: ks.label.Kernel, Output: i, Mode: r.env.Overflow.Mode}
		if r.env.Overflow.Report != nil {
			r.env.Overflow.Report(h)
		}
		if r.env.Overflow.Stop {
			return ks.label.Place(status.Errorf(status.ErrRuntimeFail, "overflow in output %d (%s mode)", i, h.Mode))
		}
	}
	return nil
}

// scan runs the detection kernel on x and returns whether it found something.
func (o *Overflow) scan(stream device.Stream, x device.Buffer, d tensor.Desc, m kernel.Machine) (bool, error) {
	var flag [1]int32
	host := device.WrapHost(device.BytesOf(flag[:]))
	if err := stream.Copy(o.Flag, host); err != nil {
		return false, err
	}
	p := kernel.Problem{In: []tensor.Desc{d}, Out: []tensor.Desc{tensor.Of(tensor.Int32, 1)}, Params: overflow.Params{Mode: o.Mode}, Machine: m}
	k, _, err := overflow.Scan.Select(&p, kernel.Filter{})
	if err != nil {
		return false, err
	}
	tiling := device.BytesOf(make([]uint64, (k.TilingSize(&p)+7)/8))
	g, err := k.Tile(&p, tiling[:k.TilingSize(&p)])
	if err != nil {
		return false, err
	}
	l := device.Launch{Program: k.Program(), Blocks: g.Blocks, Key: g.Key, Buffers: []device.Buffer{x, o.Flag}, Inputs: 1, Inline: tiling}
	if err := stream.Launch(&l); err != nil {
		return false, err
	}
	if err := stream.Copy(host, o.Flag); err != nil {
		return false, err
	}
	err = stream.Synchronize(context.Background())
	return flag[0] != 0, err
}
