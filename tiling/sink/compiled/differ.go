package compiled

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"goatb/device"
)

// difference is the first one between two units: why is "" for equal ones. The
// larger at, the later it is.
type difference struct {
	why, node string
	at        int
}

// differs compares a unit with a graph at hand in all that the unit depends on.
func (u *Unit) differs(now *Unit) difference {
	switch {
	case u.Streams != now.Streams || u.Main != now.Main:
		return difference{why: fmt.Sprintf("want %d streams that are joined to number %d of them, got %d and %d", u.Streams, u.Main, now.Streams, now.Main), at: -1}
	case len(u.Nodes) != len(now.Nodes):
		return difference{why: fmt.Sprintf("want %d kernels and events, got %d", len(u.Nodes), len(now.Nodes)), at: -1}
	}
	for i := range u.Nodes {
		n := &u.Nodes[i]
		if at, why := n.differs(&now.Nodes[i]); why != "" {
			return difference{why, n.Op.Name, i<<8 + at}
		}
	}
	return difference{}
}

// differs returns the first difference to a node at hand, "" for none.
func (n *Node) differs(o *Node) (at int, why string) {
	parts := [...]struct{ name, want, got string }{
		{"node", n.Op.Name, o.Op.Name},
		{"kernel", n.Op.Type, o.Op.Type},
		{"inputs", n.In, o.In},
		{"outputs", n.Out, o.Out},
		{"values", n.Val, o.Val},
		{"parameters", n.Params, o.Params},
		{"options", n.Options, o.Options},
		{"places of values", n.Values, o.Values},
		{"stream", strconv.Itoa(n.Op.Stream), strconv.Itoa(o.Op.Stream)},
		{"pair of events", strconv.Itoa(n.Pair), strconv.Itoa(o.Pair)},
		{"waiting for an event", strconv.FormatBool(n.Waits), strconv.FormatBool(o.Waits)},
		{"layout of parameters and tiling", n.Layout, o.Layout},
		{"bytes of tiling", strconv.Itoa(n.TilingBytes), strconv.Itoa(o.TilingBytes)},
		{"bytes of workspace", strconv.FormatInt(n.Scratch, 10), strconv.FormatInt(o.Scratch, 10)},
	}
	for i, p := range parts {
		if p.want != p.got {
			return i, fmt.Sprintf("%s: want %q, got %q", p.name, p.want, p.got)
		}
	}
	switch {
	case !sameWords(n.Args, o.Args):
		return len(parts), fmt.Sprintf("operands: want %q, got %q", n.Args, o.Args)
	case !reflect.DeepEqual(n.Op, o.Op):
		return len(parts) + 1, fmt.Sprintf("what it says of its tiling: want %s, got %s", n.tiling(), o.tiling())
	}
	return 0, ""
}

// tiling is what gates and generator read of a node.
func (n *Node) tiling() string {
	o := n.Op
	o.Registration = nil
	reg := "none"
	if r := n.Op.Registration; r != nil {
		reg = fmt.Sprintf("%+v", *r)
	}
	return fmt.Sprintf("registration %s in %+v", reg, o)
}

// sameWords compares words one by one. That of an input without device memory says
// nothing: a tensor whose values are read on the host may be bound with it or
// without.
func sameWords(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	input := device.InputMemory.String()
	for i := range a {
		if a[i] != b[i] && !(a[i] == noWord && strings.HasPrefix(b[i], input)) && !(b[i] == noWord && strings.HasPrefix(a[i], input)) {
			return false
		}
	}
	return true
}
