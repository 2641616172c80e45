package checked

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"goatb/device"
	"goatb/status"
)

// guardBytes is the length of the guard behind an allocation and of the
// checked end of the page before it.
const guardBytes = 1024

// guardPattern fills guards: an odd value that kernels seldom write.
const guardPattern = 0xA7

// allocation is memory that the layer handed out.
type allocation struct {
	outer   *device.Allocation
	inner   device.Buffer
	front   int64 // bytes of inner before the user's memory
	lo, hi  uint64
	before  []byte // guards, nil when the memory cannot be addressed
	behind  []byte
	history history
	made    site
}

// alloc reserves memory with guards around it.
func (d *Device) alloc(space device.Space, size int64, take func(int64) (device.Buffer, error), made site) (device.Buffer, error) {
	a := &allocation{made: made}
	room := size
	if size > 0 && d.inner.Props().Addressable && size < math.MaxInt64/2 {
		a.front = int64(os.Getpagesize())
		room = a.front + size + guardBytes
	}
	inner, err := take(room)
	if err != nil {
		return device.Buffer{}, err
	}
	a.inner = inner
	var mem []byte
	if a.front > 0 {
		all := inner.Bytes()
		mem = all[a.front : a.front+size : a.front+size]
		a.before, a.behind = all[a.front-guardBytes:a.front], all[a.front+size:]
		a.fillGuards()
		a.lo = address(mem)
		a.hi = a.lo + uint64(size)
	}
	a.outer = device.NewAllocation(space, size, mem)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed.Load() {
		return device.Buffer{}, status.Errorf(status.ErrDeviceFail, "want an open device, got a closed one")
	}
	d.live[a.outer] = a
	if a.hi > 0 {
		at, _ := slices.BinarySearchFunc(d.sorted, a.lo, func(o *allocation, lo uint64) int { return cmp.Compare(o.lo, lo) })
		d.sorted = slices.Insert(d.sorted, at, a)
	}
	return device.Whole(a.outer), nil
}

func bytesOf(n int64) string { return strconv.FormatInt(n, 10) + " bytes" }

func address(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) }

func (a *allocation) fillGuards() {
	for _, g := range [...][]byte{a.before, a.behind} {
		for i := range g {
			g[i] = guardPattern
		}
	}
}

// broken says what was written around the allocation, nothing when it is whole.
// A broken guard is mended, so that each write is reported once.
func (a *allocation) broken() string {
	text := ""
	if i := firstBad(a.before); i >= 0 {
		text = fmt.Sprintf("byte %d before", len(a.before)-i)
	}
	if i := firstBad(a.behind); i >= 0 {
		if text != "" {
			text += " and "
		}
		text += fmt.Sprintf("byte %d behind", i)
	}
	if text == "" {
		return ""
	}
	a.fillGuards()
	return fmt.Sprintf("%s an allocation of %d bytes made at %s", text, a.outer.Size(), a.made.String())
}

func firstBad(guard []byte) int {
	return slices.IndexFunc(guard, func(b byte) bool { return b != guardPattern })
}

// free gives an allocation back.
func (d *Device) free(b device.Buffer, at site) error {
	a := b.Allocation()
	if a == nil || b.Offset() != 0 || b.Size() != a.Size() {
		return d.inner.Free(b)
	}
	d.mu.Lock()
	own, ok := d.live[a]
	if ok {
		a.Release()
		d.forget(own)
		d.remember(a, at)
	}
	freed, again := d.freed[a]
	d.mu.Unlock()
	if ok {
		d.guardMu.Lock()
		defer d.guardMu.Unlock()
		var found error
		if text := own.broken(); text != "" {
			found = (&Finding{Kind: OutOfBounds, Text: text + " was written before its free at " + at.String()}).failure(status.ErrRuntimeFail, nil)
		}
		return errors.Join(d.inner.Free(own.inner), found)
	}
	err := d.inner.Free(b)
	if err != nil && again && !d.closed.Load() {
		return withPlace(err, "freed before at "+freed.String())
	}
	return err
}

// forget takes an allocation off the books; mu is held.
func (d *Device) forget(own *allocation) {
	delete(d.live, own.outer)
	d.sorted = slices.DeleteFunc(d.sorted, func(o *allocation) bool { return o == own })
}

// freedKept is the number of freed allocations whose place of free is known.
const freedKept = 4096

// remember keeps the place of a free; mu is held.
func (d *Device) remember(a *device.Allocation, at site) {
	d.freed[a] = at
	d.freedOrder = append(d.freedOrder, a)
	if len(d.freedOrder) > freedKept {
		delete(d.freed, d.freedOrder[0])
		d.freedOrder = d.freedOrder[1:]
	}
}

// usable reports whether b is a live window inside its allocation.
func usable(b device.Buffer) bool {
	return b.Live() && b.Offset() >= 0 && b.Size() >= 0 && b.Size() <= b.Allocation().Size()-b.Offset()
}

// translate returns the inner device's name of b; memory that is not the
// layer's, or that the inner device has to refuse, keeps its own.
func (d *Device) translate(b device.Buffer) device.Buffer {
	if !usable(b) {
		return b
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inside(b)
}

// inside is translate for a usable buffer; mu is held.
func (d *Device) inside(b device.Buffer) device.Buffer {
	if own, ok := d.live[b.Allocation()]; ok {
		return own.inner.At(own.front+b.Offset(), b.Size())
	}
	return b
}

// explain adds to a refusal where memory among bufs was freed.
func (d *Device) explain(err error, what origin, bufs ...device.Buffer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, b := range bufs {
		if at, ok := d.freed[b.Allocation()]; ok {
			f := &Finding{Kind: UseAfterFree, Text: fmt.Sprintf("%s uses memory of %d bytes that was freed at %s", what.String(), b.Allocation().Size(), at.String())}
			return errors.Join(err, f.failure(status.CodeOf(err), what.label))
		}
	}
	return err
}

// withPlace adds a remark to the text of err.
func withPlace(err error, remark string) error {
	e, ok := errors.AsType[*status.OpError](err)
	if !ok {
		return err
	}
	out := *e
	out.Err = fmt.Errorf("%w, %s", e.Err, remark)
	return &out
}

// checkGuards looks at the guards of all allocations.
func (d *Device) checkGuards() []*Finding {
	d.guardMu.Lock()
	defer d.guardMu.Unlock()
	d.mu.Lock()
	own := slices.Collect(maps.Values(d.live))
	d.mu.Unlock()
	return guardFindings(own, "was written")
}

// guardFindings looks at the guards of some allocations; guardMu is held.
func guardFindings(own []*allocation, verb string) []*Finding {
	var found []*Finding
	for _, a := range own {
		if text := a.broken(); text != "" {
			found = append(found, &Finding{Kind: OutOfBounds, Text: text + " " + verb})
		}
	}
	return found
}
