package roofline

import (
	"context"
	"errors"
	"fmt"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation"
)

// Case is an operation on one shape.
type Case struct {
	// Name, Shape and DType say what it is.
	Name, Shape, DType string
	// Flops counts multiplications and additions of one run, Bytes the memory
	// that it has to read and write when nothing is cached.
	Flops, Bytes float64
	// Peak is the data type whose multiply-add peak limits the run; empty for
	// one that only moves data, which a copy of as many bytes limits.
	Peak string
	// Build fills a bench with the calls that runs take in turn.
	Build func(b *Bench) error
}

// Bench runs the calls of a case on a context of its own. It belongs to one
// goroutine.
type Bench struct {
	// C is the context, on a CPU device with as many workers as threads.
	C *atb.Context

	dev    *cpu.Device
	guest  bool  // the device is another bench's
	beyond int64 // memory that weights and caches rotate through
	calls  []call
	last   int // the call that ran last
	common *common
}

// common is what benches beside each other have in common.
type common struct {
	// next is the call that the next run takes: none of the benches runs on what
	// another one has just left in caches.
	next int
	// ws is the workspace of all calls, as that of a model is one for all layers.
	ws atb.Buffer
}

type call struct {
	op   *atb.Op
	pack atb.VariantPack
}

// Open builds a case for a number of threads. Weights and caches that a case
// finds in memory rotate through as many bytes as beyond says.
func Open(c *Case, threads int, beyond int64) (*Bench, error) {
	dev, err := cpu.New(cpu.WithWorkers(threads))
	if err != nil {
		return nil, err
	}
	b := &Bench{dev: dev, beyond: beyond, common: &common{}}
	b.C, err = atb.NewContext(dev, noVariables())
	if err == nil {
		err = c.Build(b)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s %s %s: %w", c.Name, c.Shape, c.DType, err), b.Close())
	}
	return b, nil
}

// Beside opens a bench that runs the same calls on the same tensors, in turn with b,
// with options for its own context. It has to be closed first.
func (b *Bench) Beside(options ...atb.Option) (*Bench, error) {
	o := &Bench{dev: b.dev, guest: true, beyond: b.beyond, common: b.common}
	var err error
	o.C, err = atb.NewContext(b.dev, append([]atb.Option{noVariables()}, options...)...)
	for i := 0; err == nil && i < len(b.calls); i++ {
		k := &b.calls[i]
		err = o.Add(k.op.Params(), k.pack.In, k.pack.Out)
	}
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// noVariables keeps the environment out of a bench.
func noVariables() atb.Option {
	return atb.WithEnv(func(string) (string, bool) { return "", false })
}

// Launches returns the kernels of the last run.
func (b *Bench) Launches() ([]operation.Launched, error) { return b.calls[b.last].op.Launches() }

// Add sets an operation up. Outputs that the caller does not give are made.
func (b *Bench) Add(s atb.Spec, in, out []atb.Tensor) error {
	op, err := atb.New(s)
	if err != nil {
		return err
	}
	b.calls = append(b.calls, call{op: op})
	k := &b.calls[len(b.calls)-1]
	k.pack = atb.VariantPack{In: in, Out: out}
	if out == nil {
		if k.pack.Out, err = b.outputs(op, in); err != nil {
			return err
		}
	}
	size, err := op.Setup(k.pack, b.C)
	ws := &b.common.ws
	if err != nil || size <= ws.Size() {
		return err
	}
	if ws.Size() > 0 {
		if err := b.C.Free(*ws); err != nil {
			return err
		}
	}
	*ws, err = b.C.Alloc(size)
	return err
}

func (b *Bench) outputs(op *atb.Op, in []atb.Tensor) ([]atb.Tensor, error) {
	descs := make([]atb.Desc, len(in))
	for i := range in {
		descs[i] = in[i].Desc
	}
	outs, err := op.InferShape(descs)
	if err != nil {
		return nil, err
	}
	ts := make([]atb.Tensor, len(outs))
	for i, d := range outs {
		if ts[i], err = atb.NewTensor(b.C, d); err != nil {
			return nil, err
		}
	}
	return ts, nil
}

// Run executes the next call and waits for it.
func (b *Bench) Run(ctx context.Context) error {
	b.last = b.common.next
	b.common.next = (b.last + 1) % len(b.calls)
	k := &b.calls[b.last]
	if _, err := k.op.Setup(k.pack, b.C); err != nil {
		return err
	}
	if err := k.op.Execute(k.pack, b.common.ws, b.C); err != nil {
		return err
	}
	return b.C.Synchronize(ctx)
}

// Close frees everything.
func (b *Bench) Close() error {
	var errs []error
	for i := range b.calls {
		errs = append(errs, b.calls[i].op.Close())
	}
	if b.C != nil {
		errs = append(errs, b.C.Close())
	}
	if !b.guest {
		errs = append(errs, b.dev.Close())
	}
	return errors.Join(errs...)
}
