package profile

// spec describes one parameter: what every profile must have.
type spec struct {
	name, unit  string
	least, most float64
	whole       bool
	meaning     string
	to          func(*Costs) *float64
}

// Units of the table. Costs holds nanoseconds, bytes per nanosecond, flops per
// nanosecond and bytes.
const (
	micros    = "us"
	gigabytes = "GB/s"
	teraflops = "TFLOPS"
	mebibytes = "MiB"
	kibibytes = "KiB"
	gibibytes = "GiB"
)

// scale brings a unit's values to those of Costs.
func scale(unit string) float64 {
	switch unit {
	case micros:
		return 1e3
	case teraflops:
		return 1e3
	case kibibytes:
		return 1 << 10
	case mebibytes:
		return 1 << 20
	case gibibytes:
		return 1 << 30
	}
	return 1
}

const (
	maxMicros = 1e6
	maxCount  = 1 << 20
)

func host(name, meaning string, to func(*Costs) *float64) spec {
	return spec{name, micros, 0, maxMicros, false, meaning, to}
}

func part(name, meaning string, to func(*Costs) *float64) spec {
	return spec{name, "", 0.01, 1, false, meaning, to}
}

func rate(name, unit, meaning string, to func(*Costs) *float64) spec {
	return spec{name, unit, 0.001, 1e7, false, meaning, to}
}

func count(name, meaning string, to func(*Costs) *float64) spec {
	return spec{name, "", 1, maxCount, true, meaning, to}
}

func size(name, unit, meaning string, to func(*Costs) *float64) spec {
	return spec{name, unit, 1, 1 << 24, false, meaning, to}
}

// table lists every parameter.
var table = []spec{
	host("launch_host", "host time of a kernel launch", func(c *Costs) *float64 { return &c.LaunchHost }),
	host("launch_args_per_kib", "host time per KiB of tiling that travels with a launch", func(c *Costs) *float64 { return &c.LaunchPerKiB }),
	host("op_wrapper_host", "host time of the library around one launch", func(c *Costs) *float64 { return &c.WrapperHost }),
	host("framework_host", "host time of a framework above the library, per launch; 0 for the library alone", func(c *Costs) *float64 { return &c.FrameworkHost }),
	host("launch_to_start", "from the end of the launch call to the start of the kernel on an idle stream", func(c *Costs) *float64 { return &c.LaunchToStart }),
	host("task_gap", "between two tasks of a busy stream", func(c *Costs) *float64 { return &c.TaskGap }),
	host("task_fetch", "from the fetch of a queue entry to its start", func(c *Costs) *float64 { return &c.TaskFetch }),
	count("queue_depth", "tasks that a stream's launch queue holds", func(c *Costs) *float64 { return &c.QueueDepth }),
	spec{"prefetch", "", 0, maxCount, true, "queue entries that are fetched ahead of the running one", func(c *Costs) *float64 { return &c.Prefetch }},
	host("copy_host", "host time of an asynchronous copy call", func(c *Costs) *float64 { return &c.CopyHost }),
	host("copy_latency", "a copy's time on the device besides its bytes", func(c *Costs) *float64 { return &c.CopyLatency }),
	rate("copy_bw_pinned", gigabytes, "copies between the device and host memory that the device has reserved", func(c *Costs) *float64 { return &c.CopyPinned }),
	rate("copy_bw_pageable", gigabytes, "copies between the device and other host memory", func(c *Costs) *float64 { return &c.CopyPageable }),
	host("event_record_host", "host time of recording an event", func(c *Costs) *float64 { return &c.RecordHost }),
	host("event_wait_host", "host time of making a stream wait for an event", func(c *Costs) *float64 { return &c.WaitHost }),
	host("event_record_dev", "stream time of a record", func(c *Costs) *float64 { return &c.RecordDev }),
	host("event_wait_dev", "stream time of a wait whose event has fired", func(c *Costs) *float64 { return &c.WaitDev }),
	host("event_create_host", "host time of making an event", func(c *Costs) *float64 { return &c.EventHost }),
	host("query_host", "host time of asking whether a stream or an event is done", func(c *Costs) *float64 { return &c.QueryHost }),
	host("stream_sync", "from the end of the device's work to the host that waits for it", func(c *Costs) *float64 { return &c.SyncHost }),
	host("alloc_host", "host time of reserving or freeing memory", func(c *Costs) *float64 { return &c.AllocHost }),
	host("graph_replay_host", "host time of starting a captured task list", func(c *Costs) *float64 { return &c.ReplayHost }),
	spec{"task_update", "", 0, 1, true, "1 where the device can patch queued tasks", func(c *Costs) *float64 { return &c.TaskUpdate }},
	host("setup_host", "host time of a Setup that finds its plan unchanged", func(c *Costs) *float64 { return &c.SetupHost }),
	host("plan_host", "host time of planning one kernel in a Setup that does not", func(c *Costs) *float64 { return &c.PlanHost }),
	host("tiling_host_vector", "host time of tiling an element-wise or moving kernel", func(c *Costs) *float64 { return &c.Tiling[Vector] }),
	host("tiling_host_norm", "host time of tiling a normalisation, softmax or activation", func(c *Costs) *float64 { return &c.Tiling[Norm] }),
	host("tiling_host_matmul", "host time of tiling a matrix product", func(c *Costs) *float64 { return &c.Tiling[Matmul] }),
	host("tiling_host_attention", "host time of tiling an attention kernel", func(c *Costs) *float64 { return &c.Tiling[Attention] }),
	host("kernel_cache_hit_host", "host time of finding a tiling in a cache", func(c *Costs) *float64 { return &c.LookupHost }),
	count("aicpu_count", "AI CPUs that run tiling functions", func(c *Costs) *float64 { return &c.AICPUs }),
	host("aicpu_dispatch", "time of starting a function on an AI CPU", func(c *Costs) *float64 { return &c.AICPUDispatch }),
	spec{"aicpu_factor", "", 0.01, 1000, false, "a tiling's time on an AI CPU over that on the host", func(c *Costs) *float64 { return &c.AICPUFactor }},
	host("task_patch", "time of patching a queued task", func(c *Costs) *float64 { return &c.TaskPatch }),
	host("kernel_fixed_vector", "fixed time of a kernel that is neither of the next two", func(c *Costs) *float64 { return &c.Fixed[Vector] }),
	host("kernel_fixed_matmul", "fixed time of a matrix product", func(c *Costs) *float64 { return &c.Fixed[Matmul] }),
	host("kernel_fixed_attention", "fixed time of an attention kernel", func(c *Costs) *float64 { return &c.Fixed[Attention] }),
	rate("cube_peak", teraflops, "peak of half-precision matrix products", func(c *Costs) *float64 { return &c.Peak }),
	part("cube_eff", "share of the peak that large products reach", func(c *Costs) *float64 { return &c.PeakShare }),
	spec{"overlap_beta", "", 0, 1, false, "share of the computing that a memory-bound kernel does not hide behind its moves", func(c *Costs) *float64 { return &c.Beta }},
	rate("mem_bw", gigabytes, "memory bandwidth", func(c *Costs) *float64 { return &c.Memory }),
	part("mem_eff", "share of the bandwidth that streaming kernels reach", func(c *Costs) *float64 { return &c.MemoryShare }),
	size("memory", gibibytes, "device memory", func(c *Costs) *float64 { return &c.Capacity }),
	size("l2_size", mebibytes, "size of the shared cache", func(c *Costs) *float64 { return &c.L2Size }),
	rate("l2_read_bw", gigabytes, "reads from the shared cache", func(c *Costs) *float64 { return &c.L2Read }),
	rate("l2_write_bw", gigabytes, "writes to the shared cache", func(c *Costs) *float64 { return &c.L2Write }),
	count("cores", "blocks that run at once", func(c *Costs) *float64 { return &c.Cores }),
	size("core_buffer", kibibytes, "fastest buffer of a core", func(c *Costs) *float64 { return &c.CoreBuffer }),
	size("core_l1", kibibytes, "larger buffer of a core", func(c *Costs) *float64 { return &c.CoreL1 }),
}
