package metamorphic

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"goatb/operation"
	"goatb/operation/activation"
	"goatb/operation/attention"
	"goatb/operation/cache"
	"goatb/operation/elementwise"
	"goatb/operation/linear"
	"goatb/operation/norm"
	"goatb/operation/shape"
	"goatb/tensor"
)

// Sizes of the attention nodes.
const (
	heads, headSize   = 2, 8
	width             = heads * headSize
	blocks, blockSize = 8, 4
	// maxRows is the largest number of rows n that a graph is run with.
	maxRows = 6
)

// size is a shape whose first dimension is a multiple of the number of rows n
// that the graph is run with; per is 0 where it is fixed.
type size struct {
	dtype tensor.DType
	per   int64
	rest  []int64
}

func (s size) desc(n int64) tensor.Desc {
	if s.per == 0 {
		return tensor.Of(s.dtype, s.rest...)
	}
	return tensor.Of(s.dtype, append([]int64{s.per * n}, s.rest...)...)
}

func rows(t tensor.DType, per int64, rest ...int64) size { return size{t, per, rest} }
func fixed(t tensor.DType, rest ...int64) size           { return size{t, 0, rest} }

func (s size) matrix() bool { return s.per > 0 && len(s.rest) == 1 }

// role says how an input of a graph is filled.
type role uint8

const (
	data     role = iota // floats
	index                // int32, rows of the smallest matrix
	slots                // int32, all different
	table                // int32, blocks of a cache
	contexts             // int32 on the host, lengths
	halves               // int32 on the device, halves of lengths
)

// value is a tensor of a recipe.
type value struct {
	size
	input bool
	role  role
	// private inputs belong to a graph inside, which may write them.
	private bool
	writer  int // the latest node that wrote it, -1 for none
	stream  int // the writer's stream
	// readers are the nodes that read it since, by stream the latest.
	readers [2]int
	reads   int
}

// step is a node of a recipe.
type step struct {
	make    func() operation.Spec // nil for an event or a graph
	graph   *recipe
	action  operation.EventAction
	event   int
	stream  int
	in, out []int
	reshape []operation.ReshapeFunc
	chunk   []operation.Chunk
}

// recipe is a random graph before it is built. The same seed gives the same
// recipe.
type recipe struct {
	seed uint64
	// named recipes are built from names, their nodes shuffled.
	named   bool
	rng     *rand.Rand
	values  []value
	steps   []step
	outputs []int
	events  int
	depth   int
	kinds   map[string]bool
	// synced[a][b] is the latest node of stream b that stream a's next node
	// happens after.
	synced  [2][2]int
	inPlace int
	views   int
}

// draw makes the recipe of a seed.
func draw(seed uint64) *recipe {
	r := newRecipe(rand.New(rand.NewPCG(77, seed)), 0)
	r.seed, r.named = seed, seed%2 == 1
	for range 2 + r.rng.IntN(2) {
		r.input(rows(tensor.Float32, 1+r.rng.Int64N(2), width), data)
	}
	target := 8 + r.rng.IntN(25)
	for len(r.steps) < target {
		r.grow()
	}
	r.finish(3)
	return r
}

func newRecipe(rng *rand.Rand, depth int) *recipe {
	return &recipe{rng: rng, depth: depth, kinds: map[string]bool{}, synced: [2][2]int{{-1, -1}, {-1, -1}}}
}

func (r *recipe) input(s size, as role) int {
	r.values = append(r.values, value{size: s, input: true, role: as, writer: -1, readers: [2]int{-1, -1}})
	return len(r.values) - 1
}

func (r *recipe) temp(s size) int {
	r.values = append(r.values, value{size: s, writer: -1, readers: [2]int{-1, -1}})
	return len(r.values) - 1
}

// pick returns a tensor that holds data and that fits, or -1. Later tensors are
// more likely.
func (r *recipe) pick(fits func(v *value) bool) int {
	var list []int
	for i := range r.values {
		v := &r.values[i]
		if v.role == data && !v.private && (v.input || v.writer >= 0) && fits(v) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return -1
	}
	return list[max(r.rng.IntN(len(list)), r.rng.IntN(len(list)))]
}

// grow adds a node of a random kind, where one fits.
func (r *recipe) grow() {
	kinds := []func(){
		r.unary, r.unary, r.binary, r.binary, r.activate, r.softmax, r.norm, r.linear, r.linear, r.transpose,
		r.concat, r.split, r.slice, r.gather, r.cast, r.paged, r.update, r.nest, r.nest,
	}
	kinds[r.rng.IntN(len(kinds))]()
}

// spec returns a maker of one parameter struct.
func spec(s operation.Spec) func() operation.Spec { return func() operation.Spec { return s } }

// add adds a node, on a random stream, behind what it depends on.
func (r *recipe) add(kind string, s step) {
	r.kinds[kind] = true
	if r.depth == 0 {
		s.stream = r.rng.IntN(2)
	}
	for _, id := range s.in {
		if id != operation.Absent {
			v := &r.values[id]
			r.behind(s.stream, v.stream, v.writer)
		}
	}
	for _, id := range s.out {
		v := &r.values[id]
		r.behind(s.stream, v.stream, v.writer)
		for other, at := range v.readers {
			r.behind(s.stream, other, at)
		}
	}
	at := len(r.steps)
	r.steps = append(r.steps, s)
	for _, id := range s.in {
		if id != operation.Absent {
			r.values[id].readers[s.stream] = at
			r.values[id].reads++
		}
	}
	for _, id := range s.out {
		v := &r.values[id]
		v.writer, v.stream, v.readers = at, s.stream, [2]int{-1, -1}
	}
}

// behind orders the next node of a stream behind node `at` of another one, by an
// event, unless it is already.
func (r *recipe) behind(stream, other, at int) {
	if at < 0 || other == stream || r.synced[stream][other] >= at {
		return
	}
	e := r.events % 3
	r.events++
	r.steps = append(r.steps,
		step{action: operation.EventRecord, event: e, stream: other},
		step{action: operation.EventWait, event: e, stream: stream})
	r.synced[stream][other] = len(r.steps) - 2
}

func matrices(v *value) bool { return v.matrix() }
func floats(v *value) bool   { return v.dtype == tensor.Float32 || v.dtype == tensor.Float16 }

func (r *recipe) unary() {
	x := r.pick(floats)
	t := []elementwise.Type{elementwise.Tanh, elementwise.Neg, elementwise.Cos, elementwise.Sin, elementwise.Muls}[r.rng.IntN(5)]
	e := elementwise.Of(t)
	e.Muls.VarAttr = 0.5
	r.add("Elewise unary", step{make: spec(e), in: []int{x}, out: []int{r.target(x)}})
}

// target returns where a node that keeps the shape of x writes: a new tensor, or
// x itself.
func (r *recipe) target(x int) int {
	if v := &r.values[x]; !v.input && r.rng.IntN(3) == 0 {
		r.inPlace++
		return x
	}
	return r.temp(r.values[x].size)
}

func (r *recipe) binary() {
	x := r.pick(floats)
	y := r.pick(func(v *value) bool { return v.dtype == r.values[x].dtype && sameShape(v.size, r.values[x].size) })
	t := []elementwise.Type{elementwise.Add, elementwise.Sub, elementwise.Mul}[r.rng.IntN(3)]
	r.add("Elewise binary", step{make: spec(elementwise.Of(t)), in: []int{x, y}, out: []int{r.target(x)}})
}

func sameShape(a, b size) bool { return a.per == b.per && slices.Equal(a.rest, b.rest) }

func (r *recipe) activate() {
	x := r.pick(matrices)
	if r.rng.IntN(2) == 0 || r.values[x].rest[0] < 2 {
		r.add("Activation", step{make: spec(activation.Of(activation.Swish)), in: []int{x}, out: []int{r.target(x)}})
		return
	}
	s := r.values[x].size
	s.rest = []int64{s.rest[0] / 2}
	if r.values[x].rest[0]%2 == 0 {
		r.add("SwiGLU", step{make: spec(activation.Of(activation.SwiGLUForward)), in: []int{x}, out: []int{r.temp(s)}})
	}
}

func (r *recipe) softmax() {
	x := r.pick(floats)
	r.add("Softmax", step{make: spec(shape.Softmax{Axes: []int64{-1}}), in: []int{x}, out: []int{r.target(x)}})
}

func (r *recipe) norm() {
	x := r.pick(matrices)
	v := r.values[x]
	gamma := r.input(fixed(v.dtype, v.rest[0]), data)
	p := norm.DefaultRMSNorm()
	p.LayerType = norm.Plain
	r.add("RmsNorm", step{make: spec(p), in: []int{x, gamma}, out: []int{r.target(x)}})
}

func (r *recipe) linear() {
	x := r.pick(matrices)
	v := r.values[x]
	out := []int64{8, width, 24}[r.rng.IntN(3)]
	w := r.input(fixed(v.dtype, out, v.rest[0]), data)
	y := r.temp(rows(v.dtype, v.per, out))
	if out == v.rest[0] {
		y = r.target(x)
	}
	r.add("Linear", step{make: spec(linear.Linear{TransposeB: true}), in: []int{x, w}, out: []int{y}})
}

// transpose swaps the last two axes of a matrix seen as [rows, c/2, 2], and sees
// the result as a matrix again in most cases.
func (r *recipe) transpose() {
	x := r.pick(func(v *value) bool { return v.matrix() && v.rest[0]%2 == 0 })
	if x < 0 {
		return
	}
	v := r.values[x]
	y := r.temp(rows(v.dtype, v.per, 2, v.rest[0]/2))
	r.views++
	r.add("Transpose", step{
		make: spec(shape.Transpose{Perm: []int64{0, 2, 1}}), in: []int{x}, out: []int{y},
		reshape: []operation.ReshapeFunc{func(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(s.Dim(0), s.Dim(1)/2, 2) }},
	})
	z := r.temp(v.size)
	r.add("Elewise unary", step{make: spec(elementwise.Of(elementwise.Neg)), in: []int{y}, out: []int{z}, reshape: []operation.ReshapeFunc{flat}})
}

// flat sees a tensor as a matrix of its rows.
func flat(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(s.Dim(0), s.Numel()/s.Dim(0)) }

func (r *recipe) concat() {
	x := r.pick(matrices)
	v := r.values[x]
	y := r.pick(func(w *value) bool {
		return w.matrix() && w.dtype == v.dtype && w.rest[0] == v.rest[0] && w.per+v.per <= 4
	})
	if y < 0 {
		return
	}
	out := rows(v.dtype, v.per+r.values[y].per, v.rest[0])
	r.add("Concat", step{make: spec(shape.Concat{ConcatDim: 0}), in: []int{x, y}, out: []int{r.temp(out)}})
}

func (r *recipe) split() {
	x := r.pick(func(v *value) bool { return v.matrix() && v.rest[0]%2 == 0 })
	if x < 0 {
		return
	}
	v := r.values[x]
	half := rows(v.dtype, v.per, v.rest[0]/2)
	r.add("Split", step{make: spec(shape.Split{SplitNum: 2, SplitDim: 1}), in: []int{x}, out: []int{r.temp(half), r.temp(half)}})
}

func (r *recipe) slice() {
	x := r.pick(func(v *value) bool { return v.matrix() && v.rest[0] > 4 })
	if x < 0 {
		return
	}
	v := r.values[x]
	from := r.rng.Int64N(3)
	p := shape.Slice{Offsets: []int64{0, from}, Size: []int64{-1, 4}}
	r.add("Slice", step{make: spec(p), in: []int{x}, out: []int{r.temp(rows(v.dtype, v.per, 4))}})
}

// gather picks rows, or takes one chunk of the rows where there are several.
func (r *recipe) gather() {
	x := r.pick(matrices)
	v := r.values[x]
	if v.per > 1 {
		r.views++
		c := operation.Chunk{Num: int(v.per), Index: r.rng.IntN(int(v.per))}
		e := elementwise.Of(elementwise.Tanh)
		r.add("Elewise unary", step{make: spec(e), in: []int{x}, out: []int{r.temp(rows(v.dtype, 1, v.rest[0]))}, chunk: []operation.Chunk{c}})
		return
	}
	i := r.input(rows(tensor.Int32, 1), index)
	r.add("Gather", step{make: spec(shape.Gather{}), in: []int{x, i}, out: []int{r.target(x)}})
}

func (r *recipe) cast() {
	x := r.pick(floats)
	s := r.values[x].size
	e := elementwise.Of(elementwise.Cast)
	e.OutTensorType = tensor.Float16
	if s.dtype == tensor.Float16 {
		e.OutTensorType = tensor.Float32
	}
	s.dtype = e.OutTensorType
	r.add("Cast", step{make: spec(e), in: []int{x}, out: []int{r.temp(s)}})
}

// headed sees a matrix as rows of heads.
func headed(s tensor.Shape) tensor.Shape { return tensor.ShapeOf(s.Dim(0), heads, headSize) }

func queries(v *value) bool { return v.matrix() && v.per == 1 && v.rest[0] == width }

// cacheOf returns an input that is a paged cache: one that is there already, or
// a new one.
func (r *recipe) cacheOf(t tensor.DType) int {
	for i := range r.values {
		if v := &r.values[i]; v.input && !v.private && v.dtype == t && len(v.rest) == 4 && r.rng.IntN(2) == 0 {
			return i
		}
	}
	return r.input(fixed(t, blocks, blockSize, heads, headSize), data)
}

func (r *recipe) paged() {
	q := r.pick(queries)
	if q < 0 {
		return
	}
	t := r.values[q].dtype
	k, v := r.cacheOf(t), r.cacheOf(t)
	tables, lengths := r.input(rows(tensor.Int32, 1, 2), table), r.lengths()
	p := attention.PagedAttention{HeadNum: heads, KVHeadNum: heads, QKScale: 0.5}
	out := r.temp(rows(t, 1, heads, headSize))
	r.views++
	r.add("PagedAttention", step{make: spec(p), in: []int{q, k, v, tables, lengths}, out: []int{out}, reshape: []operation.ReshapeFunc{headed, nil, nil, nil, nil}})
	y := r.temp(rows(t, 1, width))
	r.add("Elewise unary", step{make: spec(elementwise.Of(elementwise.Tanh)), in: []int{out}, out: []int{y}, reshape: []operation.ReshapeFunc{flat}})
}

// update writes new rows into caches in place: inputs of the graph.
func (r *recipe) update() {
	k := r.pick(queries)
	v := r.pick(func(v *value) bool { return queries(v) && v.dtype == r.values[max(k, 0)].dtype })
	if k < 0 || v < 0 {
		return
	}
	t := r.values[k].dtype
	kc := r.cacheOf(t)
	vc := r.cacheOf(t)
	if vc == kc {
		vc = r.input(fixed(t, blocks, blockSize, heads, headSize), data)
	}
	at := r.input(rows(tensor.Int32, 1), slots)
	r.inPlace++
	r.add("ReshapeAndCache", step{
		make: spec(cache.ReshapeAndCache{}), in: []int{k, v, kc, vc, at}, out: []int{kc, vc},
		reshape: []operation.ReshapeFunc{headed, headed, nil, nil, nil},
	})
}

// nest adds a small graph as a node, now and then in place.
func (r *recipe) nest() {
	x := r.pick(matrices)
	if r.depth >= 2 || x < 0 {
		return
	}
	g := newRecipe(r.rng, r.depth+1)
	g.named = !r.named
	first := g.input(r.values[x].size, data)
	for range 3 + r.rng.IntN(4) {
		g.grow()
	}
	if len(g.steps) == 0 {
		return
	}
	g.finish(1)
	s := step{graph: g, in: []int{x}}
	for i := range g.values {
		if v := &g.values[i]; v.input && i != first {
			own := r.input(v.size, v.role)
			r.values[own].private = true
			s.in = append(s.in, own)
		}
	}
	for _, id := range g.outputs {
		out := g.values[id].size
		if !r.values[x].input && !slices.Contains(s.out, x) && out.dtype == r.values[x].dtype && sameShape(out, r.values[x].size) && r.rng.IntN(4) > 0 {
			r.inPlace++
			s.out = append(s.out, x)
			continue
		}
		s.out = append(s.out, r.temp(out))
	}
	for k := range g.kinds {
		r.kinds[k] = true
	}
	r.views += g.views
	r.inPlace += g.inPlace
	r.add("graph", s)
}

// finish chooses the outputs: tensors that nobody reads, and some others.
func (r *recipe) finish(extra int) {
	for i := range r.values {
		v := &r.values[i]
		if !v.input && v.reads == 0 && v.writer >= 0 {
			r.outputs = append(r.outputs, i)
		}
	}
	for range extra {
		i := r.rng.IntN(len(r.values))
		if v := &r.values[i]; !v.input && v.writer >= 0 && !slices.Contains(r.outputs, i) {
			r.outputs = append(r.outputs, i)
		}
	}
}

func (r *recipe) String() string {
	return fmt.Sprintf("seed %d: %d nodes, %d inputs, %d outputs, %d events, %d in place, %d views", r.seed, len(r.steps), len(r.inputs()), len(r.outputs), r.events, r.inPlace, r.views)
}

// inputs lists the tensors that the caller passes in.
func (r *recipe) inputs() []int {
	var list []int
	for i := range r.values {
		if r.values[i].input {
			list = append(list, i)
		}
	}
	return list
}

// outputDescs describes the outputs for n rows.
func (r *recipe) outputDescs(n int64) []tensor.Desc {
	var d []tensor.Desc
	for _, i := range r.outputs {
		d = append(d, r.values[i].desc(n))
	}
	return d
}
