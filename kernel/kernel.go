package kernel

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"goatb/device"
	"goatb/status"
)

// Align is the alignment of every tiling in memory, and of T inside it.
const Align = 64

// Args is what a running kernel sees.
type Args = device.Args

// Def describes a kernel with parameters P and tiling T. P must be comparable
// and free of pointers; T must be free of pointers, slices, strings and
// interfaces, since it travels as bytes. Bytes between fields are zeros, so equal
// problems give equal bytes on every processor.
type Def[P comparable, T any] struct {
	// Name is "family/variant", such as "rmsnorm/go".
	Name string
	// Package names the package that the kernel comes with, "" for the kernels of
	// this library. A tiling function of another package runs on the device as a
	// custom one, with LogBytes of workspace for its log.
	Package string
	// Class is the engine that the kernel keeps busy.
	Class device.Class
	// InPlace says that an output may be exactly the memory of an input. Pairs
	// lists the pairs of output and input for which it holds, nil for all: a
	// kernel that reads an operand for more than the element, or the row, that
	// it writes must leave that operand out.
	InPlace bool
	Pairs   [][2]int
	// Moves tells which bytes of an input the kernel moves to an output, for a
	// planner that may lay them over each other; the kernel must then be right
	// where they are one memory. Nil means none.
	Moves func(p *Problem, a P, out, in int) Moved
	// Supports returns why the kernel cannot do p, or nil. A nil Supports
	// supports everything.
	Supports func(p *Problem, a P) error
	// Slower says, for people, which of the kernel's faster ways a problem that it
	// supports turns off, and why. Nothing depends on it. Nil means none.
	Slower func(p *Problem, a P) []string
	// Scratch bounds the scratch bytes for every tiling of p, whatever the
	// host values. A nil Scratch needs none.
	Scratch func(p *Problem, a P) int64
	// Tail returns the number of 64-bit words behind T. Nil means none.
	Tail func(p *Problem, a P) int
	// Tile fills the zeroed tiling. It checks the host values that it reads:
	// a value that would lead Run or Share outside its operands is an error.
	Tile func(p *Problem, a P, t *T, tail []int64) (Grid, error)
	// TileOn says where Tile may run, and so both places and names the function
	// of a device tiling; the zero value means OnHost. With OnAICPU the problem
	// is read back from device memory: it has descriptors, parameters, machine,
	// options and the values of Problem.Val, and Tile reads nothing else. It
	// then takes all-zero values too, with which a graph is planned whose
	// values are not known yet.
	TileOn Placement
	// Keys is the number of variants of a kernel whose tiling may run on the
	// device: Tile chooses a key from 0 to Keys-1. The zero value means 1.
	Keys int
	// Begin, beside Run or Share, prepares in scratch memory what blocks read: once,
	// before the first of them. Nil means nothing.
	Begin func(a *Args, t *T, tail []int64) error
	// Run computes block `block` of a.Blocks. Blocks run in any order and at
	// once; a result must not depend on the number of workers unless the
	// kernel's comment says so.
	Run func(a *Args, block int, t *T, tail []int64) error
	// Share, in the place of Run, computes the blocks [lo, hi), neighbours that a
	// worker has taken together. It may use the scratch memory of all of them, and
	// does once what they all need.
	Share func(a *Args, lo, hi int, t *T, tail []int64) error
	// Ahead is for kernels that wait for memory: the part of an operand that a block and
	// its neighbours go through, from the block's beginning on, for devices that fetch it
	// while launches before this one run. Mem of an operand that was freed is nil, and so
	// is the part of it. A nil Ahead has none.
	Ahead func(a *Args, block int, t *T, tail []int64) []byte
	// Explain tells people how a tiling cuts the work. Nil means not at all.
	Explain func(t *T, tail []int64) string
	// Cost gives flops and bytes of a launch with the tiling. Nil means unknown.
	Cost func(t *T, tail []int64) (flops, bytes int64)
}

// Kernel is a kernel without its types: what tables, plans and devices hold.
// It is immutable.
type Kernel struct {
	name     string
	pkg      string
	class    device.Class
	inPlace  bool
	pairs    [][2]int
	moves    func(p *Problem, out, in int) Moved
	tileOn   Placement
	keys     int
	program  device.Program
	supports func(p *Problem) error
	slower   func(p *Problem) []string
	scratch  func(p *Problem) int64
	tail     func(p *Problem) int
	tile     func(p *Problem, dst []byte) (Grid, error)
	explain  func(tiling []byte) string
	params   paramCodec
	size     int
	types    [2]reflect.Type // of parameters and tiling
}

// Define makes a kernel. It panics when T holds pointers, P is not plain data, Tile
// is missing, there is not one of Run and Share, or TileOn has a place that does not
// exist: that is a fault of the program, found when the package is loaded.
func Define[P comparable, T any](d Def[P, T]) *Kernel {
	if d.Tile == nil || (d.Run == nil) == (d.Share == nil) {
		panic(fmt.Sprintf("kernel %s: want a tiling and one compute function", d.Name))
	}
	if d.TileOn&^allPlaces != 0 {
		panic(fmt.Sprintf("kernel %s: want tiling placements of %s, got %s", d.Name, allPlaces, d.TileOn))
	}
	mustBePlain(d.Name, reflect.TypeFor[T]())
	mustBePlain(d.Name, reflect.TypeFor[P]())
	size, gaps := int(unsafe.Sizeof(*new(T))), gapsOf(reflect.TypeFor[T](), 0)
	if whole := (size + 7) &^ 7; whole > size {
		gaps, size = append(gaps, gap{size, whole}), whole
	}
	k := &Kernel{name: d.Name, pkg: d.Package, class: d.Class, inPlace: d.InPlace, pairs: d.Pairs, tileOn: d.TileOn, keys: max(d.Keys, 1), size: size}
	k.types = [2]reflect.Type{reflect.TypeFor[P](), reflect.TypeFor[T]()}
	if k.tileOn == 0 {
		k.tileOn = OnHost
	}
	k.params = paramCodec{
		size: int(unsafe.Sizeof(*new(P))), align: int(unsafe.Alignof(*new(P))),
		encode: encodeParams[P](gapsOf(reflect.TypeFor[P](), 0)), view: viewParams[P],
	}
	k.supports = func(p *Problem) error {
		a, ok := paramsOf[P](p)
		if !ok {
			return wrongParams[P](p)
		}
		if d.Supports == nil {
			return nil
		}
		return d.Supports(p, a)
	}
	k.slower = func(p *Problem) []string {
		if d.Slower == nil || k.supports(p) != nil {
			return nil
		}
		return d.Slower(p, mustParams[P](p))
	}
	k.scratch = func(p *Problem) int64 {
		if d.Scratch == nil {
			return 0
		}
		return d.Scratch(p, mustParams[P](p))
	}
	k.tail = func(p *Problem) int {
		if d.Tail == nil {
			return 0
		}
		return d.Tail(p, mustParams[P](p))
	}
	k.tile = func(p *Problem, dst []byte) (Grid, error) {
		t, tail := split[T](dst, size)
		g, err := d.Tile(p, mustParams[P](p), t, tail)
		clearGaps(dst, gaps)
		return g, err
	}
	k.explain = func(tiling []byte) string {
		if d.Explain == nil {
			return ""
		}
		t, tail := split[T](tiling, size)
		return d.Explain(t, tail)
	}
	k.moves = func(p *Problem, out, in int) Moved {
		if d.Moves == nil {
			return Moved{}
		}
		return d.Moves(p, mustParams[P](p), out, in)
	}
	k.program = device.Program{Name: d.Name, Class: d.Class, Overlay: d.Moves != nil}
	k.program.Run, k.program.Share = compute(d.Run, d.Share, size)
	if d.Begin != nil {
		k.program.Begin = func(a *device.Args) error {
			t, tail := split[T](a.Tiling, size)
			return d.Begin(a, t, tail)
		}
	}
	if d.Ahead != nil {
		k.program.Ahead = func(a *device.Args, block int) []byte {
			t, tail := split[T](a.Tiling, size)
			return d.Ahead(a, block, t, tail)
		}
	}
	if d.Cost != nil {
		k.program.Cost = func(tiling []byte, _ uint64, blocks int) device.Cost {
			t, tail := split[T](tiling, size)
			c := device.Cost{Class: d.Class, Blocks: blocks}
			c.Flops, c.Bytes = d.Cost(t, tail)
			return c
		}
	}
	return k
}

// compute makes the compute functions of a program, of which one is there. They hold
// nothing but what they call: they run for every launch.
func compute[T any](run func(*Args, int, *T, []int64) error, share func(*Args, int, int, *T, []int64) error, size int) (
	one func(*Args, int) error, some func(*Args, int, int) error) {
	if share == nil {
		return func(a *Args, block int) error {
			t, tail := split[T](a.Tiling, size)
			return run(a, block, t, tail)
		}, nil
	}
	some = func(a *Args, lo, hi int) error {
		t, tail := split[T](a.Tiling, size)
		return share(a, lo, hi, t, tail)
	}
	return func(a *Args, block int) error { return some(a, block, block+1) }, some
}

// split views tiling bytes as T and its tail.
func split[T any](b []byte, size int) (*T, []int64) {
	t := (*T)(unsafe.Pointer(unsafe.SliceData(b[:size:len(b)])))
	return t, device.View[int64](b[size:])
}

// mustBePlain panics unless values of type t can travel as bytes.
func mustBePlain(name string, t reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			mustBePlain(name, f.Type)
		}
	case reflect.Array:
		mustBePlain(name, t.Elem())
	case reflect.Pointer, reflect.Slice, reflect.String, reflect.Map, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		panic(fmt.Sprintf("kernel %s: %s cannot travel as bytes", name, t))
	}
}

// Name returns "family/variant".
func (k *Kernel) Name() string { return k.name }

// Package names the package that the kernel comes with, "" for this library.
func (k *Kernel) Package() string { return k.pkg }

// LogBytes is the workspace that a tiling function of another package has on the
// device for its log.
const LogBytes = 20480

// LogBytes returns the bytes of workspace for the log of the kernel's tiling on
// the device: 0 for a kernel of this library and for one that is tiled on the
// host only.
func (k *Kernel) LogBytes() int64 {
	if k.pkg == "" || !k.tileOn.Has(OnAICPU) {
		return 0
	}
	return LogBytes
}

// Class returns the engine that the kernel keeps busy.
func (k *Kernel) Class() device.Class { return k.class }

// InPlace reports whether output `out` may be exactly the memory of input `in`.
func (k *Kernel) InPlace(out, in int) bool {
	return k.inPlace && (k.pairs == nil || slices.Contains(k.pairs, [2]int{out, in}))
}

// TileOn returns the places where Tile may run.
func (k *Kernel) TileOn() Placement { return k.tileOn }

// Keys returns the number of tiling keys of a kernel whose tiling may run on the
// device: 0 to Keys-1.
func (k *Kernel) Keys() int { return k.keys }

// Program returns what a device launches.
func (k *Kernel) Program() *device.Program { return &k.program }

// Supports returns why the kernel cannot do p, or nil.
func (k *Kernel) Supports(p *Problem) error { return k.supports(p) }

// Slower says which of the kernel's faster ways p turns off, and why: none for a
// problem that it does not support.
func (k *Kernel) Slower(p *Problem) []string { return k.slower(p) }

// Scratch bounds the scratch bytes of every tiling of p.
func (k *Kernel) Scratch(p *Problem) int64 { return k.scratch(p) }

// TilingSize returns the bytes of a tiling of p, a multiple of 8.
func (k *Kernel) TilingSize(p *Problem) int { return k.size + 8*k.tail(p) }

// Explain tells how a tiling that Tile made cuts the work, "" where the kernel
// does not say.
func (k *Kernel) Explain(tiling []byte) string {
	if k == nil || len(tiling) < k.size {
		return ""
	}
	return k.explain(tiling)
}

// Tile writes the tiling of p, with p.Values set, to dst, which has TilingSize
// bytes and is 64-byte aligned. Equal problems give equal bytes.
func (k *Kernel) Tile(p *Problem, dst []byte) (Grid, error) {
	clear(dst)
	g, err := k.tile(p, dst)
	if err != nil {
		return Grid{}, err
	}
	if g.Blocks < 1 {
		return Grid{}, status.Errorf(status.ErrInternal, "tiling of %s chose %d blocks", k.name, g.Blocks)
	}
	return g, nil
}
