package compare

// Result is a comparison. Times are nanoseconds, sizes bytes.
type Result struct {
	// ID names the run: on the simulated device a hash of the configuration.
	ID string `json:"id"`
	// Profile is the cost profile's name, "cpu" for the CPU device, Device the
	// device's own.
	Profile string `json:"profile"`
	Device  string `json:"device"`
	// Model is the shape's name, Parallel its tensor-parallel degree.
	Model    string `json:"model"`
	Parallel int    `json:"tensor_parallel"`
	DType    string `json:"dtype"`
	Batch    int    `json:"batch"`
	Context  int    `json:"context"`
	// Prompt is the number of new tokens of each sequence in a step, 1 when it
	// decodes.
	Prompt int `json:"prompt"`
	// Steps is the number of steps measured. Times are those of one step, the
	// median by its length; counts are of all of them together.
	Steps       int           `json:"steps"`
	Numerics    bool          `json:"numerics"`
	Caches      bool          `json:"caches"`
	Policies    []Policy      `json:"policies"`
	Conclusions []Conclusion  `json:"conclusions,omitempty"`
	Sensitivity []Sensitivity `json:"sensitivity,omitempty"`
	// Costs are the parameters that the times rest on, none on the CPU device.
	Costs []Cost `json:"costs,omitempty"`
	// Memory is the workspace plan of a layer.
	Memory Memory `json:"memory"`

	// Timelines are those of the steps measured, one for each policy, where
	// Config.Timeline asks for them.
	Timelines []*Timeline `json:"-"`
}

// Policy is the outcome of one policy.
type Policy struct {
	Policy string `json:"policy"`
	StepNs int64  `json:"step_ns"`
	// Ratio is the step over that of the first policy.
	Ratio float64 `json:"ratio"`
	// HostBusyNs is the time in which the host worked, DeviceBusyNs that in which
	// a kernel ran.
	HostBusyNs   int64 `json:"host_busy_ns"`
	DeviceBusyNs int64 `json:"device_busy_ns"`
	// Idle is StepNs less DeviceBusyNs by cause.
	Idle          Idle  `json:"idle_ns"`
	BytesMoved    int64 `json:"bytes_moved"`
	RingStalls    int64 `json:"ring_stalls"`
	QueueDepthMax int64 `json:"queue_depth_max"`
	Kernels       int64 `json:"kernels"`
	HostTilings   int64 `json:"host_tilings"`
	DeviceTilings int64 `json:"device_tilings"`
	Cache         Cache `json:"cache"`
	SetupHits     int64 `json:"setup_hits"`
	// WorkspaceBytes is the context's workspace.
	WorkspaceBytes int64 `json:"workspace_bytes"`
	// Fallbacks are what device-sink left to the host, since the session began.
	Fallbacks []Fallback `json:"fallbacks,omitempty"`
}

// Fallback is what was to leave the host and did not, and why; an empty Node
// stands for a whole operation. Times counts the operations and captures.
type Fallback struct {
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason"`
	Times  int64  `json:"times"`
}

// Idle is the time in which no kernel ran, by what the device waited for.
type Idle struct {
	// Tiling is waiting for a tiling to be looked up or computed, by the host or
	// by an AI CPU.
	Tiling int64 `json:"tiling"`
	// Copy is waiting for a copy: its call or its bytes.
	Copy int64 `json:"copy"`
	// Launch is waiting for a launch: its call, or the way from the call to the
	// kernel.
	Launch int64 `json:"launch"`
	// Event is waiting for an event, or for the calls that record or await it.
	Event int64 `json:"event"`
	// Ring is waiting for a host that waits for a tiling block.
	Ring int64 `json:"ring"`
	// Other is everything else: Setup, the host that waits for the last step, and
	// what comes before its next call.
	Other int64 `json:"other"`
}

// Sum is the whole idle time.
func (i *Idle) Sum() int64 { return i.Tiling + i.Copy + i.Launch + i.Event + i.Ring + i.Other }

// Cache counts tiling lookups.
type Cache struct {
	LocalHits  int64 `json:"local_hits"`
	GlobalHits int64 `json:"global_hits"`
	Misses     int64 `json:"misses"`
}

// Sensitivity is the step of each policy with one parameter changed.
type Sensitivity struct {
	Param  string           `json:"param"`
	Factor float64          `json:"factor"`
	StepNs map[string]int64 `json:"step_ns"`
}

// Conclusion is the order of two policies, and whether it holds when the
// estimated parameters are half and twice what they are.
type Conclusion struct {
	Faster string  `json:"faster"`
	Slower string  `json:"slower"`
	Ratio  float64 `json:"ratio"`
	Solid  bool    `json:"solid"`
	// Fails lists the changes under which the order is the other one, such as
	// "aicpu_factor x 2".
	Fails []string `json:"fails,omitempty"`
}

// Cost is one parameter of the profile.
type Cost struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Value  float64 `json:"value"`
	Basis  string  `json:"basis"`
	Source string  `json:"source"`
}

// Memory is a workspace plan.
type Memory struct {
	Operation  string `json:"operation"`
	Nodes      int    `json:"nodes"`
	Scratch    int64  `json:"scratch"`
	Arena      int64  `json:"arena"`
	LowerBound int64  `json:"lower_bound"`
	// Method is what found the plan, Optimal says that no arena is smaller.
	Method  string `json:"method"`
	Optimal bool   `json:"optimal"`
	// PeakAt is the first node at which most bytes are live.
	PeakAt  int      `json:"peak_at"`
	Buffers []Buffer `json:"buffers"`
}

// Buffer is one piece of a plan: it is live from node First to node Last. Offsets
// count from the start of the workspace.
type Buffer struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	First  int    `json:"first"`
	Last   int    `json:"last"`
	Offset int64  `json:"offset"`
}
