package operation

import (
	"goatb/kernelgraph"
	"goatb/tensor"
)

// Spec is what a parameter struct implements to be an operation. A Spec is
// plain data: it is copied, compared with reflect.DeepEqual and written as
// JSON with ATB's keys. Its methods must not change it, and may be called from
// any goroutine.
type Spec interface {
	// Signature describes the operands; it may depend on the parameters.
	Signature() Signature
	// Validate checks the parameters alone. Errors are ErrInvalidParam.
	Validate() error
	// Check checks what the shared checker cannot know: ranks and sizes of
	// this operation, in ATB's order. It is called at InferShape with inputs
	// and at Setup with inputs and outputs.
	Check(q *Query) error
	// Infer returns the output descriptors; Check has passed.
	Infer(q *Query) ([]tensor.Desc, error)
	// Lower builds the kernel graph; Check has passed at stage Setup.
	Lower(b *kernelgraph.Builder, q *Query) error
}

// ValueChecker is implemented by specs that read host values: CheckValues
// checks them against the descriptors, whenever they changed since they were
// last checked. Kernels check again what their memory safety hangs on.
type ValueChecker interface {
	CheckValues(q *Query) error
}

// Dynamic is implemented by specs whose kernel list, shapes or scratch bounds
// depend on host values or on a condition: the words that PlanKey appends to
// dst are part of the plan's key, and it is called at every Setup.
type Dynamic interface {
	PlanKey(dst []uint64, q *Query) ([]uint64, error)
}

// Signature describes an operation's operands.
type Signature struct {
	// Name is the operation's type, such as "RmsNormOperation".
	Name string
	// In and Out are the operands.
	In, Out []Port
	// Variant names the operation's row set in a profile's dtype and layout
	// table, such as "RmsNormOperationPRENORM".
	Variant string
	// Native lists the combinations that the mathematics allows, in the form
	// that ParseCombos reads; profile native checks them.
	Native string
	// TableInputsOnly says that the table is matched on the inputs alone at
	// Setup too.
	TableInputsOnly bool
}

// Port is one operand.
type Port struct {
	// Name is what errors call it, such as "gamma".
	Name string
	// Optional operands may be absent.
	Optional bool
	// Host says that the operation reads the operand's values on the host.
	Host bool
	// either says that data on the host alone will do: for a user's own
	// operation, whatever it reads.
	either bool
}

// join adds what another reader of the operand allows and wants.
func (p *Port) join(o *Port) {
	p.Optional = p.Optional || o.Optional
	p.Host = p.Host || o.Host
	p.either = p.either || o.either
}

// Ports makes ports from names. A name that ends in "?" is optional, one that
// ends in "!" has its values read on the host, "?!" is both.
func Ports(names ...string) []Port {
	ports := make([]Port, len(names))
	for i, n := range names {
		for len(n) > 0 {
			switch n[len(n)-1] {
			case '!':
				ports[i].Host = true
			case '?':
				ports[i].Optional = true
			default:
				ports[i].Name = n
			}
			if ports[i].Name != "" {
				break
			}
			n = n[:len(n)-1]
		}
	}
	return ports
}
