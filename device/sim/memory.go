package sim

import (
	"math"

	"goatb/device"
	"goatb/status"
)

// smallBytes bounds the device memory that has bytes when numerics are off.
const smallBytes = 16 << 20

// memory books the device's memory. The bytes, where there are any, are the
// inner device's.
type memory struct {
	// live holds what was handed out and not freed, true for what has no bytes.
	live map[*device.Allocation]bool
	used int64 // bytes of device memory
}

// Alloc reserves device memory.
func (d *Device) Alloc(size int64) (device.Buffer, error) {
	if err := d.exists(); err != nil {
		return device.Buffer{}, err
	}
	return d.reserve(device.DeviceSpace, size, !d.numerics && size > smallBytes, d.inner.Alloc)
}

// Reserve reserves device memory that has bytes also when numerics are off.
func (d *Device) Reserve(size int64) (device.Buffer, error) {
	if err := d.exists(); err != nil {
		return device.Buffer{}, err
	}
	return d.reserve(device.DeviceSpace, size, false, d.inner.Reserve)
}

// AllocHost reserves host memory.
func (d *Device) AllocHost(size int64) (device.Buffer, error) {
	if err := d.exists(); err != nil {
		return device.Buffer{}, err
	}
	return d.reserve(device.HostSpace, size, false, d.inner.AllocHost)
}

// reserve takes memory of the inner device, or of nothing but a size.
func (d *Device) reserve(space device.Space, size int64, hollow bool, take func(int64) (device.Buffer, error)) (device.Buffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	capacity := int64(min(d.costs.Capacity, math.MaxInt64/2))
	if space == device.DeviceSpace && size > capacity-d.mem.used && !d.closed {
		return device.Buffer{}, status.Errorf(status.ErrOutOfDeviceMemory, "want %d bytes, got %d free of %d", size, capacity-d.mem.used, capacity)
	}
	var b device.Buffer
	if hollow && !d.closed {
		b = device.Whole(device.NewAllocation(space, size, nil))
	} else {
		var err error
		if b, err = take(size); err != nil {
			return device.Buffer{}, err
		}
	}
	d.mem.live[b.Allocation()] = hollow
	if space == device.DeviceSpace {
		d.mem.used += size
	}
	d.charge("memory", "alloc", d.costs.AllocHost)
	return b, nil
}

// Free gives memory back.
func (d *Device) Free(b device.Buffer) error {
	if err := d.exists(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := b.Allocation()
	if hollow := d.mem.live[a]; !hollow {
		if err := d.inner.Free(b); err != nil {
			return err
		}
	} else {
		if b.Offset() != 0 || b.Size() != a.Size() {
			return status.Errorf(status.ErrInvalidParam, "want a whole allocation of %d bytes to free, got a window of %d bytes at %d", a.Size(), b.Size(), b.Offset())
		}
		a.Release()
	}
	delete(d.mem.live, a)
	if b.Space() == device.DeviceSpace {
		d.mem.used -= a.Size()
	}
	d.charge("memory", "free", d.costs.AllocHost)
	return nil
}

// close frees everything.
func (m *memory) close() {
	for a := range m.live {
		a.Release()
	}
	clear(m.live)
}

// unusable says what is wrong with an operand that may have no bytes, nothing
// for no memory at all.
func unusable(b device.Buffer) string {
	a := b.Allocation()
	switch {
	case a == nil:
		return ""
	case a.Freed():
		return "freed memory"
	case b.Offset() < 0 || b.Size() < 0 || b.Offset() > a.Size() || b.Size() > a.Size()-b.Offset():
		return "a window outside its allocation"
	}
	return ""
}
