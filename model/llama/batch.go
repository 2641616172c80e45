package llama

import (
	"goatb/atb"
	"goatb/device"
	"goatb/tensor"
)

// shapeKey is a number of rows and of wanted rows.
type shapeKey struct{ rows, want int }

// batch holds the memory and the tensor packs of Forwards of one shape, so that
// a steady step makes nothing anew.
type batch struct {
	// staging is host memory that one copy brings to onDevice; the slices are
	// windows of it.
	staging, onDevice                   device.Buffer
	ids, positions, slots, want, tables []int32
	// contexts is read on the host.
	contexts []int32
	embed    atb.VariantPack
	layers   []atb.VariantPack
	head     atb.VariantPack
	// logitsHost receives the logits, floats is them widened.
	logitsHost device.Buffer
	floats     []float32
}

// batch returns the batch of a shape.
func (s *Session) batch(rows, want int) (*batch, error) {
	key := shapeKey{rows, want}
	if b, ok := s.buffers[key]; ok {
		return b, nil
	}
	b := &batch{contexts: make([]int32, rows), floats: make([]float32, want*s.m.Config.Vocab)}
	if err := b.allocate(s, rows, want); err != nil {
		return nil, err
	}
	s.buffers[key] = b
	return b, nil
}

// allocate makes the batch's memory and packs.
func (b *batch) allocate(s *Session, rows, want int) error {
	cfg, m := &s.m.Config, s.m
	total := int64(4 * (4*rows + want + rows*s.blocks))
	var err error
	if b.staging, err = m.dev.AllocHost(total); err != nil {
		return err
	}
	s.own = append(s.own, b.staging)
	if b.onDevice, err = s.c.Alloc(total); err != nil {
		return err
	}
	s.own = append(s.own, b.onDevice)
	at := int64(0)
	cut := func(n int, dims ...int64) ([]int32, atb.Tensor) {
		size := int64(4 * n)
		host := device.View[int32](b.staging.At(at, size).Bytes())
		t := atb.Tensor{Desc: tensor.Of(tensor.Int32, dims...), Data: b.onDevice.At(at, size)}
		at += size
		return host, t
	}
	n := int64(rows)
	var ids, positions, slots, wanted, tables, lengths atb.Tensor
	b.ids, ids = cut(rows, n)
	b.positions, positions = cut(rows, n)
	b.slots, slots = cut(rows, n)
	ones, lengths := cut(rows, n)
	b.want, wanted = cut(want, int64(want))
	b.tables, tables = cut(rows*s.blocks, n, int64(s.blocks))
	for i := range ones {
		ones[i] = 1
	}
	lengths.Host = device.BytesOf(ones)
	tensors := make([]atb.Tensor, 0, 6)
	for _, x := range [...]struct {
		t    atb.DType
		dims []int64
	}{
		{m.DType, []int64{n, int64(cfg.Dim)}}, {m.DType, []int64{n, int64(cfg.Dim)}},
		{m.ropeType, []int64{n, int64(cfg.HeadDim())}}, {m.ropeType, []int64{n, int64(cfg.HeadDim())}},
		{m.DType, []int64{int64(want), int64(cfg.Vocab)}},
	} {
		t, err := s.tensor(x.t, x.dims...)
		if err != nil {
			return err
		}
		tensors = append(tensors, t)
	}
	x, y, cos, sin, logits := tensors[0], tensors[1], tensors[2], tensors[3], tensors[4]
	if b.logitsHost, err = m.dev.AllocHost(logits.Data.Size()); err != nil {
		return err
	}
	s.own = append(s.own, b.logitsHost)
	b.embed = atb.VariantPack{In: []atb.Tensor{m.embedding, m.cos, m.sin, ids, positions}, Out: []atb.Tensor{x, cos, sin}}
	contexts := atb.Host(b.contexts)
	for i := range m.layers {
		l := &m.layers[i]
		b.layers = append(b.layers, atb.VariantPack{
			In: []atb.Tensor{x, cos, sin, lengths, l.attnNorm, l.wq, l.wk, l.wv, l.wo, l.ffnNorm, l.gateUp, l.down,
				s.caches[i].k, s.caches[i].v, slots, tables, contexts},
			Out: []atb.Tensor{y},
		})
		x, y = y, x
	}
	b.head = atb.VariantPack{In: []atb.Tensor{x, wanted, m.finalNorm, m.classifier}, Out: []atb.Tensor{logits}}
	return nil
}

// setup sets every operation up and returns the largest workspace.
func (b *batch) setup(s *Session) (int64, error) {
	size, err := s.embed.Setup(b.embed, s.c)
	if err != nil {
		return 0, err
	}
	for i, op := range s.layers {
		n, err := op.Setup(b.layers[i], s.c)
		if err != nil {
			return 0, err
		}
		size = max(size, n)
	}
	n, err := s.head.Setup(b.head, s.c)
	return max(size, n), err
}

// execute enqueues every operation.
func (b *batch) execute(s *Session, ws atb.Buffer) error {
	if err := s.embed.Execute(b.embed, ws, s.c); err != nil {
		return err
	}
	for i, op := range s.layers {
		if err := op.Execute(b.layers[i], ws, s.c); err != nil {
			return err
		}
	}
	return s.head.Execute(b.head, ws, s.c)
}
