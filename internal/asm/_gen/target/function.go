package target

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
)

// Function begins a function with Go signature sig, such as "func(n int)". Its
// pointers do not escape and it calls nothing. doc becomes the comment of its Go
// declaration: it says what the loop does, in what units the sizes are, and
// what the memory behind the pointers must hold.
func Function(c *build.Context, name, sig string, doc ...string) {
	c.Function(name)
	c.Attributes(attr.NOSPLIT | attr.NOFRAME)
	c.SignatureExpr(sig)
	c.Pragma("noescape")
	c.Doc(doc...)
}

// Return ends a function that used vector registers.
func Return(c *build.Context) {
	c.VZEROUPPER()
	c.RET()
}
