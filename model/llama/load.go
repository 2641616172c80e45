package llama

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"goatb/atb"
	"goatb/device"
	"goatb/kernel"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/tensor"
)

// slab is about the number of elements that are on their way at a time.
const slab = 1 << 20

// loader brings the weights of a source to a model's memory, some rows at a time:
// what is there of them as float32 or unpacked is a slab. It keeps the first
// error.
type loader struct {
	m   *Model
	src Source
	// floats and host hold rows on their way, staging is device memory for them.
	floats  []float32
	host    []byte
	staging atb.Buffer
	// quantise, pack and packInt4 run once for each slab.
	quantise, pack, packInt4 *atb.Op
	err                      error
}

func newLoader(m *Model, src Source) (*loader, error) {
	l := &loader{m: m, src: src}
	for _, o := range [...]struct {
		to   **atb.Op
		spec atb.Spec
	}{{&l.quantise, elementwise.Of(elementwise.DynamicQuant)}, {&l.pack, linear.Pack{TransposeB: true}}, {&l.packInt4, linear.PackInt4{}}} {
		var err error
		if *o.to, err = atb.New(o.spec); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// close frees what was needed on the way and returns the first error.
func (l *loader) close() error {
	err := errors.Join(l.err, l.quantise.Close(), l.pack.Close(), l.packInt4.Close())
	if !l.staging.IsNil() {
		err = errors.Join(err, l.m.memory.dev.Free(l.staging))
	}
	return err
}

// source is a tensor of one layer. A matrix may be some of them, one below the
// other.
type source struct {
	t     Tensor
	layer int
}

// vector loads a tensor of one row for each of so many layers, one behind the
// other.
func (l *loader) vector(t Tensor, layers int) atb.Tensor {
	_, cols := l.m.Config.Size(t)
	f := make([]float32, layers*cols)
	for i := 0; i < layers && l.err == nil; i++ {
		l.err = l.src.Rows(f[i*cols:][:cols], t, i, 0)
	}
	return l.floatsOf(l.m.DType, f, int64(len(f)))
}

// floatsOf makes a tensor of values.
func (l *loader) floatsOf(t atb.DType, data []float32, dims ...int64) (x atb.Tensor) {
	if l.err == nil {
		x, l.err = l.m.memory.floats(t, data, dims...)
	}
	return x
}

// matrix loads a matrix in the model's format.
func (l *loader) matrix(from ...source) matrix {
	return l.matrixAs(l.m.layout(from...), from...)
}

// layout is how a matrix of some tensors is stored.
func (m *Model) layout(from ...source) layout {
	rows, cols := 0, 0
	for _, s := range from {
		var n int
		n, cols = m.Config.Size(s.t)
		rows += n
	}
	return m.Format.layoutOf(rows, cols, m.checks)
}

func (l *loader) matrixAs(as layout, from ...source) matrix {
	x := matrix{layout: as}
	descs, err := as.descs()
	l.err = errors.Join(l.err, err)
	for _, d := range descs {
		if l.err != nil {
			return x
		}
		var t atb.Tensor
		t, l.err = l.m.memory.of(d)
		x.tensors = append(x.tensors, t)
	}
	most := max(slab/as.cols/tensor.PanelColumns, 1) * tensor.PanelColumns
	for at := int64(0); at < as.rows && l.err == nil; at += most {
		if l.err = l.rows(&x, at, min(most, as.rows-at), from); l.err != nil {
			l.err = fmt.Errorf("upload: %w", l.err)
		}
	}
	return x
}

// rows loads n rows of a matrix from row at on.
func (l *loader) rows(x *matrix, at, n int64, from []source) error {
	l.floats = grown(l.floats, n*x.cols)
	switch x.Weights {
	case Int8:
		return l.int8Rows(x, at, n, from)
	case Int4:
		return l.int4Rows(x, at, n, from)
	}
	size := x.DType.Size()
	l.host = grown(l.host, n*x.cols*size)
	err := l.fill(at, n, x.cols, from, func(r, end int64) error {
		kernel.StoreFloats(l.host[r*x.cols*size:end*x.cols*size], l.floats[r*x.cols:end*x.cols], x.DType)
		return nil
	})
	if err != nil {
		return err
	}
	d := tensor.Of(x.DType, n, x.cols)
	if !x.packed {
		to := atb.Tensor{Desc: d, Data: x.tensors[0].Data.At(at*x.cols*size, d.Bytes())}
		return atb.Write(context.Background(), l.m.memory.c, &to, l.host)
	}
	staged, err := l.stage(d)
	if err != nil {
		return err
	}
	if err := atb.Write(context.Background(), l.m.memory.c, &staged[0], l.host); err != nil {
		return err
	}
	return l.run(l.pack, staged, []atb.Tensor{x.panels(at, n)})
}

// int8Rows rounds rows to int8, each by its largest element.
func (l *loader) int8Rows(x *matrix, at, n int64, from []source) error {
	err := l.fill(at, n, x.cols, from, func(r, end int64) error { return finite(l.floats[r*x.cols:end*x.cols], at+r, x.cols) })
	if err != nil {
		return err
	}
	staged, err := l.stage(tensor.Of(tensor.Float32, n, x.cols), tensor.Of(tensor.Int8, n, x.cols))
	if err != nil {
		return err
	}
	if err := atb.Write(context.Background(), l.m.memory.c, &staged[0], device.BytesOf(l.floats)); err != nil {
		return err
	}
	scale := atb.Tensor{Desc: tensor.Of(tensor.Float32, n), Data: x.tensors[1].Data.At(4*at, 4*n)}
	if err := l.run(l.quantise, staged[:1], []atb.Tensor{staged[1], scale}); err != nil {
		return err
	}
	return l.run(l.pack, staged[1:], []atb.Tensor{x.panels(at, n)})
}

// int4Rows rounds groups of rows to int4.
func (l *loader) int4Rows(x *matrix, at, n int64, from []source) error {
	bits, scales := tensor.Of(tensor.Uint8, n, x.cols/2), tensor.Of(tensor.Float16, n, x.cols/int4Group)
	l.host = grown(l.host, bits.Bytes()+scales.Bytes())
	to, by := l.host[:bits.Bytes()], device.View[tensor.F16](l.host[bits.Bytes():])
	err := l.fill(at, n, x.cols, from, func(r, end int64) error {
		rows := l.floats[r*x.cols : end*x.cols]
		roundInt4(to[r*x.cols/2:end*x.cols/2], by[r*x.cols/int4Group:end*x.cols/int4Group], rows)
		return finite(rows, at+r, x.cols)
	})
	if err != nil {
		return err
	}
	staged, err := l.stage(bits, scales)
	if err != nil {
		return err
	}
	for i, b := range [...][]byte{to, device.BytesOf(by)} {
		if err := atb.Write(context.Background(), l.m.memory.c, &staged[i], b); err != nil {
			return err
		}
	}
	return l.run(l.packInt4, staged, []atb.Tensor{x.panels(at, n)})
}

// panels is the window of a packed matrix that n rows from row at on lie in.
func (x *matrix) panels(at, n int64) atb.Tensor {
	t := x.tensors[0]
	first, count := at/tensor.PanelColumns, (n-1)/tensor.PanelColumns+1
	size := t.Desc.Bytes() / ((x.rows-1)/tensor.PanelColumns + 1)
	if x.Weights == Int4 {
		t.Desc.Shape = t.Desc.Shape.With(0, count)
	} else {
		t.Desc.Shape = t.Desc.Shape.With(0, n)
	}
	t.Data = t.Data.At(first*size, count*size)
	return t
}

// stage returns tensors in device memory for what is on its way.
func (l *loader) stage(descs ...tensor.Desc) ([]atb.Tensor, error) {
	const align = 64
	total := int64(0)
	for i := range descs {
		total += (descs[i].Bytes() + align - 1) / align * align
	}
	if l.staging.IsNil() || l.staging.Size() < total {
		if !l.staging.IsNil() {
			if err := l.m.memory.dev.Free(l.staging); err != nil {
				return nil, err
			}
		}
		var err error
		if l.staging, err = l.m.memory.c.Alloc(total); err != nil {
			l.staging = atb.Buffer{}
			return nil, err
		}
	}
	out, at := make([]atb.Tensor, len(descs)), int64(0)
	for i, d := range descs {
		out[i] = atb.Tensor{Desc: d, Data: l.staging.At(at, d.Bytes())}
		at += (d.Bytes() + align - 1) / align * align
	}
	return out, nil
}

// run runs an operation and waits for it.
func (l *loader) run(op *atb.Op, in, out []atb.Tensor) error {
	c, pack := l.m.memory.c, atb.VariantPack{In: in, Out: out}
	size, err := op.Setup(pack, c)
	if err != nil {
		return err
	}
	ws, err := c.Workspace(size)
	if err != nil {
		return err
	}
	if err := op.Execute(pack, ws, c); err != nil {
		return err
	}
	return c.Synchronize(context.Background())
}

// fill reads n rows of a matrix from row at on into floats and has then called for
// parts of them, [r, end) of the n: several at once.
func (l *loader) fill(at, n, cols int64, from []source, then func(r, end int64) error) error {
	parts := min(int64(runtime.GOMAXPROCS(0)), n)
	errs := make([]error, parts)
	var all sync.WaitGroup
	for i := range parts {
		all.Go(func() {
			r, end := kernel.Share(n, int(i), int(parts))
			if errs[i] = l.read(l.floats[r*cols:end*cols], at+r, from); errs[i] == nil {
				errs[i] = then(r, end)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// read reads rows of a matrix from row at on.
func (l *loader) read(dst []float32, at int64, from []source) error {
	for _, s := range from {
		rows, cols := l.m.Config.Size(s.t)
		n := min(len(dst)/cols, rows-int(at))
		if n <= 0 {
			at -= int64(rows)
			continue
		}
		if err := l.src.Rows(dst[:n*cols], s.t, s.layer, int(at)); err != nil {
			return err
		}
		dst, at = dst[n*cols:], 0
	}
	return nil
}

// grown returns a slice of n elements, that of s where it is long enough.
func grown[T any](s []T, n int64) []T {
	if int64(cap(s)) < n {
		return make([]T, n)
	}
	return s[:n]
}

// finite refuses elements that no scale fits.
func finite(rows []float32, at, cols int64) error {
	for i, v := range rows {
		if v-v != 0 {
			return fmt.Errorf("row %d, column %d of a matrix is %g, which cannot be rounded to integers", at+int64(i)/cols, int64(i)%cols, v)
		}
	}
	return nil
}

// roundInt4 rounds groups of x to the multiples -8 to 7 of their scales, two of
// them in a byte. The largest element of a group becomes -8 times its scale.
func roundInt4(bits []byte, scales []tensor.F16, x []float32) {
	for g := range scales {
		group, to := x[g*int4Group:][:int4Group], bits[g*int4Group/2:][:int4Group/2]
		least, most := float32(0), float32(0)
		for _, v := range group {
			least, most = min(least, v), max(most, v)
		}
		largest := most
		if -least > most {
			largest = least
		}
		scales[g] = tensor.F16From(max(min(largest/-8, maxFloat16), -maxFloat16))
		factor := float32(0)
		if s := scales[g].Float32(); s != 0 {
			factor = 1 / s
		}
		for i := range to {
			to[i] = nibble(group[2*i]*factor) | nibble(group[2*i+1]*factor)<<4
		}
	}
}

const maxFloat16 = 65504

// nibble rounds to an integer of -8 to 7 in the lower half of a byte. Halves round up.
func nibble(v float32) byte { return byte(int32(max(min(v, 7), -8)+8.5)-8) & 15 }
