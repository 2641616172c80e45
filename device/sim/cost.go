package sim

import (
	"strings"

	"goatb/device"
	"goatb/device/sim/profile"
)

// rowFamilies are the kernel families whose tilings look at whole rows.
const rowFamilies = " rmsnorm layernorm softmax softmax-max softmax-exp softmax-normalise activation swiglu swiglu-grad "

// groupOf returns the price group of a kernel.
func groupOf(p *device.Program) profile.Group {
	if p == nil {
		return profile.Vector
	}
	switch p.Class {
	case device.Cube:
		return profile.Matmul
	case device.Mix:
		return profile.Attention
	}
	family, _, _ := strings.Cut(p.Name, "/")
	if strings.Contains(rowFamilies, " "+family+" ") {
		return profile.Norm
	}
	return profile.Vector
}

// duration is the time that a task takes on its stream once it has begun.
func (d *Device) duration(t *task) int64 {
	c := &d.costs
	switch t.kind {
	case launchTask:
		t.launched()
		if !t.ran {
			return 0
		}
		ns := d.kernelTime(t)
		if t.listed != nil && t.sub > t.listed.first {
			ns -= c.Fixed[groupOf(t.program)] // one launch for all kernels of a super kernel
		}
		return round(ns)
	case copyTask:
		for _, b := range t.bufs {
			d.cache.write(b, int64(c.L2Size))
		}
		return round(c.CopyLatency + float64(t.bytes)/t.rate)
	case recordTask:
		return round(c.RecordDev)
	case preprocessTask:
		return round(c.AICPUDispatch + float64(c.AICPUFactor*c.Tiling[t.listed.group]))
	case updateTask:
		return round(c.TaskPatch)
	case nopTask:
		return round(c.TaskGap)
	default:
		return round(c.WaitDev)
	}
}

// launched completes a task of a list by what its kernel did.
func (t *task) launched() {
	if t.listed == nil {
		return
	}
	r := &t.exec.runs[t.sub]
	t.program, t.ran, t.blocks, t.inputs, t.cost = r.program, r.ran, r.blocks, r.inputs, r.cost
	t.bufs = t.bufs[:0]
	for i := range t.exec.model.operands[t.sub] {
		t.bufs = append(t.bufs, t.exec.memory.at(&t.exec.model.operands[t.sub][i]))
	}
}

// kernelTime is a roofline with a fixed part:
//
//	compute = flops / (peak * share * utilisation)      matrix products and attention
//	move    = memory bytes / (bandwidth * share) + cache bytes / cache bandwidth
//	time    = fixed + max(compute, move) + beta * compute where moving takes longer
//
// Utilisation is that of the last wave of blocks. A kernel that does nothing takes
// no time but the gap before it.
func (d *Device) kernelTime(t *task) float64 {
	c := &d.costs
	if t.cost.Flops == 0 && t.cost.Bytes == 0 {
		return 0
	}
	g := groupOf(t.program)
	move := d.moveTime(t)
	compute := 0.0
	if g == profile.Matmul || g == profile.Attention {
		blocks, cores := float64(t.blocks), c.Cores
		waves := float64((t.blocks + int(cores) - 1) / int(cores))
		compute = float64(t.cost.Flops) / (c.Peak * c.PeakShare * (blocks / (waves * cores)))
	}
	if compute > move {
		return c.Fixed[g] + compute
	}
	return c.Fixed[g] + move + float64(c.Beta*compute)
}

// moveTime is the time that the bytes of a kernel take.
func (d *Device) moveTime(t *task) float64 {
	c := &d.costs
	bytes := t.cost.Bytes
	each := level(t.bufs, bytes)
	var near, written int64
	for i, b := range t.bufs {
		size := min(b.Size(), each)
		bytes -= size
		if i >= t.inputs {
			if d.cache.write(b.At(0, size), int64(c.L2Size)) {
				written += size
				continue
			}
		} else if d.cache.read(b, size, int64(c.L2Size)) {
			near += size
			continue
		}
		bytes += size
	}
	far := float64(max(bytes, 0))
	return far/float64(c.Memory*c.MemoryShare) + float64(near)/c.L2Read + float64(written)/c.L2Write
}

// level returns the size up to which each operand is touched when all of them
// together are touched for a number of bytes: small operands whole, large ones,
// such as caches and tables, in part.
func level(bufs []device.Buffer, bytes int64) int64 {
	lo, hi := int64(0), max(bytes, 0)
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		sum := int64(0)
		for _, b := range bufs {
			if sum += min(b.Size(), mid); sum > bytes {
				break
			}
		}
		if sum > bytes {
			hi = mid - 1
		} else {
			lo = mid
		}
	}
	return lo
}

// route returns the engine that copies and its bytes per nanosecond.
func (d *Device) route(dst, src device.Buffer) (*pool, float64) {
	pinned := true
	for _, b := range [...]device.Buffer{dst, src} {
		if _, own := d.mem.live[b.Allocation()]; !own && b.Space() == device.HostSpace {
			pinned = false
		}
	}
	return d.routeBetween(dst.Space(), src.Space(), pinned)
}

func (d *Device) routeBetween(dst, src device.Space, pinned bool) (*pool, float64) {
	c, e := &d.costs, &d.engine
	rate := c.CopyPageable
	if pinned {
		rate = c.CopyPinned
	}
	switch {
	case dst == device.DeviceSpace && src == device.DeviceSpace:
		return &e.across, c.Memory * c.MemoryShare / 2
	case dst == device.DeviceSpace:
		return &e.up, rate
	}
	return &e.down, rate
}
