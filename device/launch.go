package device

// Program is code that a device can run: one kernel. It is immutable and may be
// shared by devices.
type Program struct {
	// Name is the kernel's name, such as "matmul/go".
	Name string
	// Class is the engine that the kernel keeps busy.
	Class Class
	// Overlay says that the kernel moves bytes and leaves alone what it would move
	// to where it is: an output may lie inside an input, or an input inside an
	// output, such that the bytes that are moved lie on each other.
	Overlay bool
	// Begin, if it is there, prepares what blocks read, in the launch's scratch memory.
	// It has ended before a block is run; an error is reported as one of block 0, and no
	// block is run.
	Begin func(a *Args) error
	// Run computes block `block` of a.Blocks. Blocks may run in any order and
	// at the same time; Run reads its tiling from a.Tiling() and touches only
	// the launch's buffers. A panic becomes the stream's error.
	Run func(a *Args, block int) error
	// Share computes the blocks [lo, hi) as Run does one by one, in less time where
	// blocks prepare the same. It may be nil. An error is reported as one of block lo,
	// and says nothing about which of the blocks are done.
	Share func(a *Args, lo, hi int) error
	// Ahead is the memory of an operand that a block goes through from its beginning on,
	// and what neighbours go through after it. Devices may fetch it into a cache while
	// launches before this one run. It may be nil; it asks nothing of memory that was
	// freed.
	Ahead func(a *Args, block int) []byte
	// Cost estimates the launch with the given tiling bytes; nil when unknown.
	Cost func(tiling []byte, key uint64, blocks int) Cost
}

// Prepare calls Begin, if it is there.
func (p *Program) Prepare(a *Args) error {
	if p == nil || p.Begin == nil {
		return nil
	}
	return p.Begin(a)
}

// Class tells which engine a kernel keeps busy.
type Class uint8

// Kernel classes.
const (
	// Vector kernels run element by element.
	Vector Class = iota
	// Cube kernels are matrix products.
	Cube
	// Mix kernels do both.
	Mix
	// Move kernels only move bytes.
	Move
)

// String returns the class in lower case.
func (c Class) String() string {
	return [...]string{"vector", "cube", "mix", "move"}[c&3]
}

// Cost is what one launch does, for rooflines, the simulator and the tuner.
type Cost struct {
	// Flops counts multiplications and additions.
	Flops int64
	// Bytes counts device memory read and written when nothing is cached.
	Bytes int64
	// Class is the engine.
	Class Class
	// Blocks is the block dim.
	Blocks int
}

// Launch asks a stream to run a program once. Streams copy it.
type Launch struct {
	Program *Program
	// Blocks is the block dim, at least 1.
	Blocks int
	// Key is the tiling key: the variant of the program.
	Key uint64
	// Buffers are the operands, inputs first. The first Inputs of them are
	// only read; the others may be written. A nil buffer is an absent operand.
	Buffers []Buffer
	Inputs  int
	// Scratch is memory for the kernel alone, contents undefined.
	Scratch Buffer
	// Inline is tiling data that travels with the launch; when it is nil the
	// tiling is read from Tiling, in device memory, when the kernel runs.
	Inline []byte
	Tiling Buffer
	// Label names the launch in errors; it may be nil.
	Label *Label
}

// Args is what a running kernel sees. It is shared by the blocks of a launch
// and must not be changed by them.
type Args struct {
	// Blocks is the block dim and Key the tiling key.
	Blocks int
	Key    uint64
	// Buffers are the operands as in Launch.
	Buffers []Buffer
	// Scratch is the kernel's own memory.
	Scratch Buffer
	// Tiling is the tiling data, 64-byte aligned.
	Tiling []byte

	// mem is the bytes of Buffers where a device has looked them up.
	mem [][]byte
}

// Mem returns the bytes of operand i, nil when it is absent.
func (a *Args) Mem(i int) []byte {
	if uint(i) < uint(len(a.mem)) {
		return a.mem[i]
	}
	return a.look(i)
}

// look is Mem where nothing was looked up. It stays out of kernels, which call Mem
// for each operand: what they run has to stay in a core's cache of instructions.
//
//go:noinline
func (a *Args) look(i int) []byte { return a.Buffers[i].Bytes() }

// LookUp looks the bytes of all operands up once, for a device that keeps the
// arguments: Mem takes them from mem, which has room for as many, until the buffers
// change.
func (a *Args) LookUp(mem [][]byte) {
	a.mem = mem[:len(a.Buffers):len(a.Buffers)]
	for i := range a.Buffers {
		a.mem[i] = a.Buffers[i].Bytes()
	}
}
