package peers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

// GGML is the library's CPU backend. Its methods may be called by one goroutine
// at a time.
type GGML struct {
	// Variant is the file of the CPU backend that the library picked.
	Variant string

	backend, extra uintptr // extra is the buffer type of repacked weights, 0 for none
	fn             ggmlFunctions
	setThreads     func(backend uintptr, n int32)
}

type ggmlParams struct {
	memSize uintptr
	mem     unsafe.Pointer
	noAlloc bool
}

type ggmlFunctions struct {
	init      func(p ggmlParams) uintptr
	free      func(ctx uintptr)
	tensor    func(ctx uintptr, dtype int32, ne0, ne1 int64) uintptr
	mulMat    func(ctx, a, b uintptr) uintptr
	graph     func(ctx uintptr) uintptr
	expand    func(graph, t uintptr)
	rowSize   func(dtype int32, n int64) uintptr
	quantize  func(dtype int32, src, dst unsafe.Pointer, start, rows, perRow int64, imatrix unsafe.Pointer) uintptr
	allocType func(ctx, buft uintptr) uintptr
	alloc     func(ctx, backend uintptr) uintptr
	freeBuf   func(buf uintptr)
	set       func(t uintptr, data unsafe.Pointer, offset, size uintptr)
	get       func(t uintptr, data unsafe.Pointer, offset, size uintptr)
	compute   func(backend, graph uintptr) int32
	proc      func(reg uintptr, name string) uintptr
	device    func(backend uintptr) uintptr
	reg       func(dev uintptr) uintptr
}

// GGMLType is a tensor type of the library, with its number there.
type GGMLType int32

// The types that are compared.
const (
	GGMLF32  GGMLType = 0
	GGMLF16  GGMLType = 1
	GGMLQ4   GGMLType = 2
	GGMLQ8   GGMLType = 8
	GGMLBF16 GGMLType = 30
)

const ggmlCPU = 0 // the device type

// LoadGGML loads the library and the backend that it thinks best for this
// processor.
func LoadGGML() (*GGML, error) {
	base, err := load("libggml-base.so")
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(folder(), "libggml.v*.so"))
	if err != nil || len(names) == 0 {
		return nil, errors.Join(err, errors.New("libggml: not there: bench/peers/fetch fetches it"))
	}
	lib, err := load(filepath.Base(names[0]))
	if err != nil {
		return nil, err
	}
	g := &GGML{}
	if err := bind(base, g.functions()); err != nil {
		return nil, err
	}
	var loadAll func(dir string)
	var open func(kind int32, params uintptr) uintptr
	err = bind(lib, map[string]any{"ggml_backend_load_all_from_path": &loadAll, "ggml_backend_init_by_type": &open})
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(folder())
	if err != nil {
		return nil, err
	}
	loadAll(dir)
	if g.backend = open(ggmlCPU, 0); g.backend == 0 {
		return nil, errors.New("ggml has no backend for this processor")
	}
	g.Variant = loadedVariant()
	return g, g.bindBackend()
}

func (g *GGML) functions() map[string]any {
	f := &g.fn
	return map[string]any{
		"ggml_init": &f.init, "ggml_free": &f.free, "ggml_new_tensor_2d": &f.tensor, "ggml_mul_mat": &f.mulMat,
		"ggml_new_graph": &f.graph, "ggml_build_forward_expand": &f.expand,
		"ggml_row_size": &f.rowSize, "ggml_quantize_chunk": &f.quantize,
		"ggml_backend_alloc_ctx_tensors_from_buft": &f.allocType, "ggml_backend_alloc_ctx_tensors": &f.alloc,
		"ggml_backend_buffer_free": &f.freeBuf, "ggml_backend_tensor_set": &f.set, "ggml_backend_tensor_get": &f.get,
		"ggml_backend_graph_compute": &f.compute, "ggml_backend_reg_get_proc_address": &f.proc,
		"ggml_backend_get_device": &f.device, "ggml_backend_dev_backend_reg": &f.reg,
	}
}

// bindBackend finds the functions that the backend itself offers.
func (g *GGML) bindBackend() error {
	dev := g.fn.device(g.backend)
	reg := g.fn.reg(dev)
	threads := g.fn.proc(reg, "ggml_backend_set_n_threads")
	if threads == 0 {
		return errors.New("ggml: no ggml_backend_set_n_threads")
	}
	register(&g.setThreads, threads)
	if p := g.fn.proc(reg, "ggml_backend_dev_get_extra_bufts"); p != 0 {
		var extra func(dev uintptr) unsafe.Pointer
		register(&extra, p)
		if list := extra(dev); list != nil {
			g.extra = *(*uintptr)(list)
		}
	}
	return nil
}

// loadedVariant names the backend's file among the mapped ones.
func loadedVariant() string {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(maps)) {
		if at := strings.Index(line, "libggml-cpu-"); at >= 0 {
			return strings.TrimSpace(line[at:])
		}
	}
	return "unknown"
}

// SetThreads sets the number of threads.
func (g *GGML) SetThreads(n int) { g.setThreads(g.backend, int32(n)) }

// Product is y[m,n] = x[m,k] w[n,k]^T for several weights w, ready to run in
// turn.
type Product struct {
	g       *GGML
	ctx     uintptr
	weights uintptr
	bufs    []uintptr
	x       uintptr
	graphs  []uintptr
	out     []uintptr
	m, n, k int
	next    int
}

// NewProduct makes products with so many copies of the weight w[n,k], converted
// to dtype. Weights of four bits are repacked into the layout that the library
// likes best.
func (g *GGML) NewProduct(dtype GGMLType, w []float32, copies, m, n, k int) (*Product, error) {
	f := &g.fn
	p := &Product{g: g, m: m, n: n, k: k}
	const room = 1 << 20
	p.ctx = f.init(ggmlParams{memSize: uintptr(copies+2) * room, noAlloc: true})
	wctx := f.init(ggmlParams{memSize: uintptr(copies+2) * 1024, noAlloc: true})
	p.weights = wctx
	var ws []uintptr
	for range copies {
		ws = append(ws, f.tensor(wctx, int32(dtype), int64(k), int64(n)))
	}
	var buf uintptr
	if dtype == GGMLQ4 && g.extra != 0 {
		buf = f.allocType(wctx, g.extra)
	}
	if buf == 0 {
		buf = f.alloc(wctx, g.backend)
	}
	p.bufs = append(p.bufs, buf)
	p.x = f.tensor(p.ctx, int32(GGMLF32), int64(k), int64(m))
	for _, w := range ws {
		y := f.mulMat(p.ctx, w, p.x)
		graph := f.graph(p.ctx)
		f.expand(graph, y)
		p.graphs, p.out = append(p.graphs, graph), append(p.out, y)
	}
	p.bufs = append(p.bufs, f.alloc(p.ctx, g.backend))
	size := int(f.rowSize(int32(dtype), int64(k))) * n
	src := ptr(w)
	if dtype != GGMLF32 {
		packed := make([]byte, size)
		if got := f.quantize(int32(dtype), ptr(w), ptr(packed), 0, int64(n), int64(k), nil); int(got) != size {
			return nil, fmt.Errorf("ggml: quantised %d bytes, want %d", got, size)
		}
		src = ptr(packed)
	}
	for i := range ws {
		f.set(ws[i], src, 0, uintptr(size))
	}
	return p, nil
}

// SetInput sets x.
func (p *Product) SetInput(x []float32) { p.g.fn.set(p.x, ptr(x), 0, uintptr(4*len(x))) }

// Run computes with the next weight.
func (p *Product) Run() {
	p.g.fn.compute(p.g.backend, p.graphs[p.next])
	p.next = (p.next + 1) % len(p.graphs)
}

// Output returns y of weight i.
func (p *Product) Output(i int) []float32 {
	y := make([]float32, p.m*p.n)
	p.g.fn.get(p.out[i], ptr(y), 0, uintptr(4*len(y)))
	return y
}

// Close frees the product.
func (p *Product) Close() {
	for _, b := range p.bufs {
		p.g.fn.freeBuf(b)
	}
	p.g.fn.free(p.ctx)
	p.g.fn.free(p.weights)
}
