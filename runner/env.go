package runner

import (
	"goatb/device"
	"goatb/kernel"
	"goatb/mempool"
	"goatb/tiling"
	"goatb/tilingcache"
)

// Env is what a runner needs of a context. The context owns everything in it.
type Env struct {
	Device device.Device
	// Machine is what tilings are told of the device.
	Machine kernel.Machine
	// Host keeps account of the host's work, nil where nobody does.
	Host device.Host
	// Streams are the execute streams by id.
	Streams []device.Stream
	Policy  tiling.Policy
	// HostRing and DeviceRing hold tiling blocks of BlockSize bytes.
	HostRing, DeviceRing *mempool.Ring
	BlockSize            int64
	// Copy and Events are there when the policy uses a copy stream.
	Copy   device.Stream
	Events *tiling.EventRing
	// Global is the shared tiling cache, nil when that level is off.
	Global *tilingcache.Global
	// LocalOn switches the local level, LocalSlots is its entries per kernel.
	LocalOn    bool
	LocalSlots int
	// SlotBytes is the largest tiling that is cached.
	SlotBytes int64
	// SyncKernel, SyncRunner and SyncOperation wait for the stream after each
	// kernel, operation of a graph, or Execute.
	SyncKernel, SyncRunner, SyncOperation bool
	// CompareTiling checks that no kernel changed the tilings in device memory.
	CompareTiling bool
	// Overflow looks for overflow after each kernel, nil when that is off.
	Overflow *Overflow
	// Sinking says how launches are captured.
	Sinking Sinking
	// Counters takes the counts of every launch.
	Counters *Counters
}

// Singly tells why the host has to launch every kernel itself, naming what was
// set, "" where it has not.
func (e *Env) Singly() string {
	switch {
	case e.SyncKernel:
		return "ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE=1 waits after single kernels"
	case e.SyncRunner:
		return "ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE=1 waits after single operations of a graph"
	case e.Overflow != nil:
		return "the overflow check looks at single kernels"
	}
	return ""
}
