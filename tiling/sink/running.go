package sink

import (
	"fmt"
	"math/bits"

	"goatb/kernel"
	"goatb/status"
)

// Resources is what a sunk operation asks for besides its main stream.
type Resources struct {
	Streams []StreamInfo
	Syncs   []SyncInfo
}

// StreamInfo asks for an attached stream.
type StreamInfo struct {
	Name, ReuseKey string
	// Depends lists the declared inputs whose values are read there, ascending.
	Depends  []int
	Required bool
}

// SyncInfo asks for a resource that orders two streams.
type SyncInfo struct{ Type, Name, ReuseKey string }

// tilingName names the attached stream and the event of a sunk operation.
const tilingName = "tiling"

// Attributes that hold the resources, as dumps name them.
const (
	attrStreams = "_attached_stream_info_list"
	attrSyncs   = "_attached_sync_res_info_list"
)

// ResourcesOf returns what a sunk operation asks for: exactly one attached
// stream and one event. Errors are ErrInvalidParam and name the operation: no
// registration, no device tiling function, or a tiling that reads no values.
func ResourcesOf(o *Op) (Resources, error) {
	r := o.Registration
	switch {
	case r == nil:
		return Resources{}, o.fail(status.ErrInvalidParam, "calc", "want a registration of its tiling, got none")
	case r.Function == "":
		return Resources{}, o.fail(status.ErrInvalidParam, "calc", "want a tiling function on the device, got none")
	case r.Depends == 0:
		return Resources{}, o.fail(status.ErrInvalidParam, "calc", "want inputs whose values its tiling reads, got none")
	}
	info := StreamInfo{Name: tilingName, Required: true}
	for set := r.Depends; set != 0; set &= set - 1 {
		info.Depends = append(info.Depends, bits.TrailingZeros64(set))
	}
	return Resources{[]StreamInfo{info}, []SyncInfo{{Type: "EVENT", Name: tilingName}}}, nil
}

// Key names the attached stream of operations on a main stream: those with one
// key share it.
func (s *StreamInfo) Key(mainStream int) string {
	return fmt.Sprintf("%s%s_stream_%d", s.ReuseKey, s.Name, mainStream)
}

// String gives the attributes.
func (r Resources) String() string {
	return fmt.Sprintf("%s=%v %s=%v", attrStreams, r.Streams, attrSyncs, r.Syncs)
}

// Workspace is one workspace of an operation on the device.
type Workspace struct {
	Size int64
	// Log marks the workspace that a device function logs to.
	Log bool
}

// Before is what the tiling on the host leaves at a sunk operation.
type Before struct {
	// Workspaces bound what any tiling may ask for, whatever the values.
	Workspaces []int64
	// Data, Key and BlockDim are what the kernel's queue entry carries until the
	// first update.
	Data     []byte
	Key      uint64
	BlockDim uint32
}

// PreTile tiles on the host once, to plan a graph: with the values in the
// problem where it has them, and with zeros where they are not known. cached is
// the result of an earlier call for the same problem, nil for none. Errors name
// the operation: no machine (ErrInternal), and the tiling's own; one that panics
// is ErrInternal.
func PreTile(o *Op, k *kernel.Kernel, p *kernel.Problem, cached *Before) (*Before, error) {
	if cached != nil {
		return cached, nil
	}
	if p.Machine.Cores < 1 {
		return nil, o.fail(status.ErrInternal, "calc", "want the platform's number of cores, got %d", p.Machine.Cores)
	}
	b, err := preTile(k, p)
	if err != nil {
		return nil, status.Place(err, status.ErrInternal, o.Type, "calc", o.Name)
	}
	return b, nil
}

func preTile(k *kernel.Kernel, p *kernel.Problem) (b *Before, err error) {
	defer func() {
		if r := recover(); r != nil {
			b, err = nil, status.Errorf(status.ErrInternal, "tiling on the host panicked: %v", r)
		}
	}()
	q := *p
	if q.Values == nil {
		q.Values = make([][]int64, len(q.Val))
		for i := range q.Val {
			q.Values[i] = make([]int64, q.Val[i].Numel())
		}
	}
	b = &Before{Data: TilingBytes(k.TilingSize(&q))}
	if n := k.Scratch(&q); n > 0 {
		b.Workspaces = []int64{n}
	}
	g, err := k.Tile(&q, b.Data)
	if err != nil {
		return nil, err
	}
	b.Key, b.BlockDim = g.Key, uint32(g.Blocks)
	return b, nil
}

// Plan lists the workspaces of the operation: those that the tiling asked for,
// and behind them the log of a function that does not come with the library.
// None at all is legal.
func (b *Before) Plan(o *Op) []Workspace {
	var out []Workspace
	for _, n := range b.Workspaces {
		out = append(out, Workspace{Size: n})
	}
	if o.custom() {
		out = append(out, Workspace{Size: kernel.LogBytes, Log: true})
	}
	return out
}
