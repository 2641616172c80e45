package kernelgraph

import (
	"goatb/kernel"
	"goatb/tensor"
)

// Ref names a tensor of a graph.
type Ref int32

// Absent is the Ref of an optional operand that is not there.
const Absent Ref = -1

// Kind tells whose memory a tensor lives in.
type Kind uint8

// Kinds of tensors.
const (
	// Input is a tensor that the caller passes in.
	Input Kind = iota
	// Output is a tensor that the caller receives.
	Output
	// Temp lives in the workspace.
	Temp
	// View is a contiguous window of another tensor.
	View
)

// Tensor is one tensor of a graph.
type Tensor struct {
	// Name is unique for people, such as "layer0/attention/scores".
	Name string
	Desc tensor.Desc
	Kind Kind
	// Index is the position among the inputs or the outputs.
	Index int
	// Base is the tensor whose memory this is; a tensor that is no view is its
	// own base. Offset is the window's first byte in it. Of is the tensor that a
	// view was taken of, for other tensors they themselves.
	Base   Ref
	Offset int64
	Of     Ref
	// Scope is the scope that made the tensor.
	Scope int
}

// NodeKind tells what a node does.
type NodeKind uint8

// Kinds of nodes.
const (
	// KernelNode launches a kernel.
	KernelNode NodeKind = iota
	// CopyNode is a kernel that copies In[0] to Out[0] and is left out when
	// both are bound to the same memory.
	CopyNode
	// RecordNode records an event on its stream.
	RecordNode
	// WaitNode waits for an event on its stream and then resets it.
	WaitNode
	// ForeignNode calls an operation that is not made of kernels.
	ForeignNode
)

// Node is one step of a graph.
type Node struct {
	Kind NodeKind
	// Op names the operation and Path the node's place in the tree.
	Op, Path string
	// Kernel does Problem; its scratch bound and tiling size are kept.
	Kernel     *kernel.Kernel
	Problem    kernel.Problem
	Scratch    int64
	TilingSize int
	// Refused lists the better kernels that were not taken, with reasons.
	Refused kernel.Refusals
	// In, Out and Val are the operands and the tensors whose values the tiling
	// reads.
	In, Out, Val []Ref
	// Stream is the id of the stream that the node runs on.
	Stream int
	// Scope is the scope that the node belongs to.
	Scope int
	// Log is memory for the log of the tiling on the device, where it has one. The
	// tiling may run any time before the node: the memory is in use from the first
	// node on.
	Log []Ref
	// NoCache keeps the node's tilings out of the caches. NeverTimeout says that
	// the kernel may run for ever.
	NoCache, NeverTimeout bool
	// Event is the event slot of a RecordNode or WaitNode, Foreign the
	// operation of a ForeignNode: the runner's business.
	Event, Foreign any
}

// Scope is a node of the tree of operations.
type Scope struct {
	// Name is the operation's or node's name, Op its type.
	Name, Op string
	// Parent is the enclosing scope, -1 for the root.
	Parent int
}

// Graph is a flat kernel graph in execution order.
type Graph struct {
	Tensors []Tensor
	Nodes   []Node
	Scopes  []Scope
	// Inputs and Outputs are the operands of the whole graph.
	Inputs, Outputs []Ref
	// Streams is one more than the largest stream id used.
	Streams int
}

// Overlap reports whether two tensors of the graph share bytes.
func (g *Graph) Overlap(a, b Ref) bool { return g.Tensors[a].overlaps(&g.Tensors[b]) }

// Base returns the tensor whose memory r uses and the byte offset in it.
func (g *Graph) Base(r Ref) (Ref, int64) {
	t := &g.Tensors[r]
	return t.Base, t.Offset
}
