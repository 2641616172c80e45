// Package kernelgraph holds the kernel graph of an operation: tensors, kernel
// nodes and the order between them; the builder that operations lower
// themselves with; and the plan of the workspace that the graph needs.
//
// An operation lowers itself by calling its Builder: it names temporaries,
// takes views and adds kernel calls in execution order. A graph operation
// lowers its nodes one after the other into scopes of the same builder, so a
// whole tree becomes one flat list with one workspace plan.
//
// A Graph is immutable once built. A Builder belongs to one goroutine.
package kernelgraph
