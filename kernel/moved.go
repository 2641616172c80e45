package kernel

// Moved is a run of bytes that a kernel copies unchanged: Bytes of an input
// from byte InAt on become those of an output from byte OutAt on. The zero
// Moved is none.
type Moved struct{ OutAt, InAt, Bytes int64 }

// Moves returns the run of bytes that the kernel moves from input `in` of p to
// output `out`.
func (k *Kernel) Moves(p *Problem, out, in int) Moved { return k.moves(p, out, in) }
