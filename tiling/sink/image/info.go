package image

import (
	"goatb/kernel"
	"goatb/status"
	"goatb/tensor"
)

// The compute node info says what the context's tensors are to the kernel, and
// what the kernel was made with:
//
//	numbers of In, Val, Out, workspaces, options and bytes of parameters, u32 each
//	for each of In, Val, Out: 1 + its number among the tensors of its kind, 0 for
//	an absent one, u32
//	pad to 8, the outputs of the launch, the bounds of the workspaces, u64 each
//	the parameters, pad to 8
type info struct {
	in, val, out, workspaces int
	options                  uint32
	params                   int
	b                        []byte
}

const infoHead = 24

// Bits of the options.
const (
	optShuffleK = 1 << iota
	optQuantMin
)

func infoBytes(s *Spec) int64 {
	n := len(s.In) + len(s.Val) + len(s.Out)
	return align(infoHead+4*int64(n), 8) + wordBytes*int64(numOutputs+len(s.Workspaces)) + align(int64(len(s.Params)), 8)
}

func (i *info) launchAt() int64    { return align(infoHead+4*int64(i.in+i.val+i.out), 8) }
func (i *info) boundsAt() int64    { return i.launchAt() + wordBytes*numOutputs }
func (i *info) paramsAt() int64    { return i.boundsAt() + wordBytes*int64(i.workspaces) }
func (i *info) size() int64        { return i.paramsAt() + align(int64(i.params), 8) }
func (i *info) bound(n int) int64  { return int64(le.Uint64(i.b[i.boundsAt()+wordBytes*int64(n):])) }
func (i *info) paramBytes() []byte { return i.b[i.paramsAt():][:i.params:i.params] }

// launch is the value of an output that the kernel is launched with.
func (i *info) launch(o Output) uint64 { return le.Uint64(i.b[i.launchAt()+wordBytes*int64(o):]) }

// instance is the number of declared operand n among the tensors of its kind, -1
// for an absent one.
func (i *info) instance(n int) int { return int(le.Uint32(i.b[infoHead+4*n:])) - 1 }

func putInfo(b []byte, s *Spec) {
	var opts uint32
	if s.Options.ShuffleK {
		opts |= optShuffleK
	}
	if s.Options.QuantMinNeg127 {
		opts |= optQuantMin
	}
	for n, v := range [...]uint32{uint32(len(s.In)), uint32(len(s.Val)), uint32(len(s.Out)), uint32(len(s.Workspaces)), opts, uint32(len(s.Params))} {
		le.PutUint32(b[4*n:], v)
	}
	at, inputs, outputs := b[infoHead:], uint32(0), uint32(0)
	number := func(descs []tensor.Desc, count *uint32) {
		for i := range descs {
			if !descs[i].Empty() {
				*count++
				le.PutUint32(at, *count)
			}
			at = at[4:]
		}
	}
	number(s.In, &inputs)
	number(s.Val, &inputs)
	number(s.Out, &outputs)
	i := info{in: len(s.In), val: len(s.Val), out: len(s.Out), workspaces: len(s.Workspaces), params: len(s.Params)}
	for n, v := range s.Launch {
		le.PutUint64(b[i.launchAt()+wordBytes*int64(n):], v)
	}
	for n, v := range s.Workspaces {
		le.PutUint64(b[i.boundsAt()+wordBytes*int64(n):], uint64(v))
	}
	copy(b[i.paramsAt():], s.Params)
}

// read reads the head at an address and then the whole.
func (i *info) read(m *Memory, at Address) error {
	head, err := m.Bytes(at, infoHead)
	if err != nil {
		return err
	}
	*i = info{
		in: int(le.Uint32(head)), val: int(le.Uint32(head[4:])), out: int(le.Uint32(head[8:])), workspaces: int(le.Uint32(head[12:])),
		options: le.Uint32(head[16:]), params: int(le.Uint32(head[20:])),
	}
	if min(i.in, i.val, i.out, i.workspaces, i.params) < 0 || max(i.in, i.val, i.out) > maxTensor || i.workspaces > MaxWorkspaces || i.params > maxText {
		return status.Errorf(status.ErrInternal, "compute node info of a tiling context: %d inputs, %d values, %d outputs, %d workspaces, %d bytes of parameters", i.in, i.val, i.out, i.workspaces, i.params)
	}
	i.b, err = m.Bytes(at, i.size())
	return err
}

// kernelOptions are the options that the kernel was made with.
func (i *info) kernelOptions() kernel.Options {
	return kernel.Options{ShuffleK: i.options&optShuffleK != 0, QuantMinNeg127: i.options&optQuantMin != 0}
}
