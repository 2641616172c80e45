package argsformat

// Kind is what an item stands for. The numbers are those of the address types
// in compiled models.
type Kind uint8

// Kinds.
const (
	Input Kind = iota
	Output
	Workspace
	Tiling
	InputDesc
	OutputDesc
	FFTSAddr
	OverflowAddr
	TilingFFTS
	HiddenInput
	TilingContext
	OpType
	Placeholder
	CustomValue
	InputInstance
	OutputInstance
	// SuperKernelSubNode is the address type of every item of a sub node; see
	// Item.AddrType. No item has it as its Kind.
	SuperKernelSubNode
	EventAddr
)

// Part selects within a kind: of a tiling context, of mixed tiling data, of
// hidden inputs, or the width of a placeholder or literal.
type Part int8

// Parts of a TilingContext: the whole, which is the zero Part of no other kind,
// and what an update or a kernel reads.
const (
	WholeContext Part = iota - 1
	TilingData
	TilingKey
	BlockDim
)

// Parts of a TilingFFTS.
const (
	NonTail Part = iota
	Tail
)

// Parts of a HiddenInput.
const (
	HCom Part = iota
	TileFwk
	HcclSK
)

// Widths of a Placeholder or CustomValue.
const (
	Bits64 Part = iota
	Bits32
)

// All is the Index that means every instance.
const All int32 = -1

// Item is one item of a format. It is comparable; fields that its kind does not
// have are zero.
type Item struct {
	Kind Kind
	// Part selects within the kind.
	Part Part
	// Index is N, or All.
	Index int32
	// Folded says that the word points to a list instead of being part of it.
	// Items that are always in the buffer, such as all inputs, are not folded.
	Folded bool
	// Value is the number of a CustomValue.
	Value uint64
	// InSubNode says that the item belongs to sub node SubNode of a super kernel.
	InSubNode bool
	SubNode   int64
}

// AddrType is the item's address type: that of its kind, and SuperKernelSubNode
// for an item of a sub node.
func (it Item) AddrType() Kind {
	if it.InSubNode {
		return SuperKernelSubNode
	}
	return it.Kind
}

// In returns the item as one of sub node `id` of a super kernel.
func (it Item) In(id int64) Item {
	it.InSubNode, it.SubNode = true, id
	return it
}

// Context is the item of a part of the tiling context.
func Context(p Part) Item { return Item{Kind: TilingContext, Part: p} }

// Event is the item of the memory flag of event `id`.
func Event(id int32) Item { return Item{Kind: EventAddr, Index: id} }

// LogWorkspace is the item of workspace n, in the buffer itself.
func LogWorkspace(n int32) Item { return Item{Kind: Workspace, Index: n} }

// shape tells what follows a name in a format.
type shape uint8

const (
	// bare names stand alone.
	bare shape = iota
	// indexed names have N, and * where unfolded.
	indexed
	// indexedOrAll names have N with or without *, or * alone.
	indexedOrAll
	// starred names have N and are always written with *.
	starred
	// valued names have an unsigned number.
	valued
)

// words lists the names of items, the longer of two that begin alike first: so
// the first that fits is the longest.
var words = []struct {
	name  string
	kind  Kind
	part  Part
	shape shape
}{
	{"tiling_context.tiling_data", TilingContext, TilingData, bare},
	{"tiling_context.tiling_key", TilingContext, TilingKey, bare},
	{"tiling_context.block_dim", TilingContext, BlockDim, bare},
	{"tiling_context", TilingContext, WholeContext, bare},
	{"t_ffts.non_tail", TilingFFTS, NonTail, bare},
	{"t_ffts.tail", TilingFFTS, Tail, bare},
	{"overflow_addr", OverflowAddr, 0, bare},
	{"i_instance", InputInstance, 0, indexedOrAll},
	{"o_instance", OutputInstance, 0, indexedOrAll},
	{"hi.tilefwk", HiddenInput, TileFwk, starred},
	{"event_addr", EventAddr, 0, starred},
	{"hi.hcclsk", HiddenInput, HcclSK, starred},
	{"ffts_addr", FFTSAddr, 0, bare},
	{"*op_type", OpType, 0, bare},
	{"hi.hcom", HiddenInput, HCom, starred},
	{"i_desc", InputDesc, 0, indexed},
	{"o_desc", OutputDesc, 0, indexed},
	{"#.32b", CustomValue, Bits32, valued},
	{".32b", Placeholder, Bits32, bare},
	{"ws", Workspace, 0, indexedOrAll},
	{"i", Input, 0, indexedOrAll},
	{"o", Output, 0, indexedOrAll},
	{"#", CustomValue, Bits64, valued},
	{"t", Tiling, 0, bare},
	{"", Placeholder, Bits64, bare},
}
