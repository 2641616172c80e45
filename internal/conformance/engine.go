package conformance

import (
	stdctx "context"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/operation/catalog"
	"goatb/tensor"
)

// Engine makes the operations that rows are run with.
type Engine interface {
	// Has reports whether there is an operation of a type.
	Has(name string) bool
	// Create makes an operation from its type and JSON parameters.
	Create(name string, param []byte) (Op, error)
}

// Op is one operation of an engine.
type Op interface {
	// InferShape returns the output descriptors.
	InferShape(in []tensor.Desc) ([]tensor.Desc, error)
	// Setup plans a call. Only the data of integer inputs need be there.
	Setup(in, out []Tensor) error
	// Execute runs the call that was set up and waits for it. Outputs whose
	// Data is an input's Data share its memory.
	Execute(in, out []Tensor) error
	// Close gives the operation back.
	Close() error
}

// Runtime is the engine that runs operations of the catalog through a context.
type Runtime struct {
	c       *atbctx.Context
	profile *operation.Profile
}

// NewRuntime makes an engine over a context, whose profile of checks holds.
func NewRuntime(c *atbctx.Context) (*Runtime, error) {
	p, err := operation.ProfileByName(c.Checks())
	if err != nil {
		return nil, err
	}
	return &Runtime{c: c, profile: p}, nil
}

// Has reports whether the catalog has the type.
func (r *Runtime) Has(name string) bool { return catalog.Has(name) }

// Create makes an operation of the catalog.
func (r *Runtime) Create(name string, param []byte) (Op, error) {
	spec, err := catalog.New(name, param)
	if err != nil {
		return nil, err
	}
	op, err := operation.New(spec)
	if err != nil {
		return nil, err
	}
	return &call{r: r, op: op}, nil
}

// call is an operation of the runtime.
type call struct {
	r  *Runtime
	op *operation.Op
	// workspace is what Setup asked for.
	workspace int64
}

func (c *call) InferShape(in []tensor.Desc) ([]tensor.Desc, error) {
	return c.op.InferShapeUnder(c.r.profile, in)
}

func (c *call) Setup(in, out []Tensor) error {
	pack := operation.VariantPack{In: hostTensors(in), Out: hostTensors(out)}
	size, err := c.op.Setup(pack, c.r.c)
	c.workspace = size
	return err
}

// hostTensors carries the data of integer tensors as host values.
func hostTensors(ts []Tensor) []device.Tensor {
	out := make([]device.Tensor, len(ts))
	for i, t := range ts {
		out[i].Desc = t.Desc
		if isIndex(t.Desc.DType) {
			out[i].Host = t.Data
		}
	}
	return out
}

// isIndex reports the types of host values.
func isIndex(t tensor.DType) bool {
	return t == tensor.Int32 || t == tensor.Uint32 || t == tensor.Int64
}

func (c *call) Execute(in, out []Tensor) (err error) {
	m := &memory{c: c.r.c, byData: map[*byte]device.Buffer{}}
	defer func() {
		if e := m.free(); err == nil {
			err = e
		}
	}()
	pack := operation.VariantPack{In: hostTensors(in), Out: hostTensors(out)}
	if err := m.place(pack.In, in); err != nil {
		return err
	}
	if err := m.place(pack.Out, out); err != nil {
		return err
	}
	workspace, err := m.alloc(c.workspace)
	if err != nil {
		return err
	}
	if err := c.op.Execute(pack, workspace, c.r.c); err != nil {
		return err
	}
	if err := c.r.c.Synchronize(stdctx.Background()); err != nil {
		return err
	}
	return m.fetch()
}

func (c *call) Close() error { return c.op.Close() }

// memory is the device memory of one call.
type memory struct {
	c       *atbctx.Context
	buffers []device.Buffer
	byData  map[*byte]device.Buffer
	host    [][]byte
	dev     []device.Buffer
}

// alloc reserves device memory, none for 0 bytes.
func (m *memory) alloc(n int64) (device.Buffer, error) {
	if n == 0 {
		return device.Buffer{}, nil
	}
	b, err := m.c.Alloc(n)
	if err == nil {
		m.buffers = append(m.buffers, b)
	}
	return b, err
}

// place copies tensors to the device; host memory that is there already is not
// copied again.
func (m *memory) place(to []device.Tensor, from []Tensor) error {
	for i := range from {
		data := from[i].Data
		if len(data) == 0 {
			continue
		}
		b, there := m.byData[&data[0]]
		if !there {
			var err error
			if b, err = m.alloc(int64(len(data))); err != nil {
				return err
			}
			t := device.Tensor{Data: b.At(0, int64(len(data)))}
			if err := atbctx.Write(stdctx.Background(), m.c, &t, data); err != nil {
				return err
			}
			m.byData[&data[0]] = b
			m.host, m.dev = append(m.host, data), append(m.dev, b)
		}
		to[i].Data = b.At(0, int64(len(data)))
	}
	return nil
}

// fetch copies everything back.
func (m *memory) fetch() error {
	for i, host := range m.host {
		t := device.Tensor{Data: m.dev[i].At(0, int64(len(host)))}
		if err := atbctx.Read(stdctx.Background(), m.c, host, &t); err != nil {
			return err
		}
	}
	return nil
}

// free gives the memory back.
func (m *memory) free() error {
	var first error
	for _, b := range m.buffers {
		if err := m.c.Free(b); err != nil && first == nil {
			first = err
		}
	}
	return first
}
