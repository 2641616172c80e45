package context

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"goatb/mempool"
	"goatb/status"
	"goatb/tiling/sink"
)

// Config is the configuration of a Context. DefaultConfig gives the defaults;
// ConfigFromEnv reads the environment over them; options of New come last.
type Config struct {
	// Policy names the tiling policy.
	Policy string
	// SinkForm is how device-sink makes graphs: update, ffts, superkernel or v2.
	// SinkOption is the session's value of ge.tiling_schedule_optimize: "", 0 or 1.
	// SinkSoc is the chip that task lists are made for. RequireSink makes it an
	// error that a tiling which reads values stays on the host. SinkDeadline bounds
	// a tiling function on the device, in milliseconds; 0 is the device's default.
	SinkForm, SinkOption, SinkSoc string
	RequireSink                   bool
	SinkDeadline                  int
	// CacheType selects the tiling cache levels: 0 none, 1 local, 2 global,
	// 3 both. LocalSlots and GlobalSlots are entries per kernel.
	CacheType               int
	LocalSlots, GlobalSlots int
	// CacheSlotBytes is the largest tiling that a cache slot takes.
	CacheSlotBytes int64
	// SetupReuse lets an unchanged operation skip its Setup.
	SetupReuse bool
	// RunnerPool is the number of idle runners kept per operation type.
	RunnerPool int
	// HostBlocks and DeviceBlocks are the sizes of the tiling rings.
	HostBlocks, DeviceBlocks int
	// Solver plans the workspace; WorkspaceGlobal plans the whole tree of
	// operations at once instead of operation by operation.
	Solver          mempool.SolverType
	WorkspaceGlobal bool
	// SyncKernel, SyncRunner and SyncOperation wait after each kernel, each
	// operation of a graph, and each Execute.
	SyncKernel, SyncRunner, SyncOperation bool
	// CompareTiling checks device tilings before and after each kernel.
	CompareTiling bool
	// ShuffleK rotates the K loop of matrix products per block.
	ShuffleK bool
	// QuantMinNeg127 makes -127 the smallest int8 of a quantisation.
	QuantMinNeg127 bool
	// ShareMemorySuffix, CommDeterministic, CommParallel and CommID belong to
	// communication.
	ShareMemorySuffix               string
	CommDeterministic, CommParallel bool
	CommID                          string
	// HomePath is accepted and unused: the dtype tables are built in.
	HomePath string
	// sources tells which variable set each value, by variable name.
	sources map[string]string
}

// Limits of the configuration.
const (
	MinHostBlocks, MaxHostBlocks     = 128, 1024
	MinDeviceBlocks, MaxDeviceBlocks = 32, 1024
	// BlockSize is the size of a tiling block in bytes.
	BlockSize = 3 << 20
	maxText   = 12800
	// maxSinkDeadline is in milliseconds.
	maxSinkDeadline = 1 << 30
)

// DefaultConfig returns the configuration of an empty environment.
func DefaultConfig() Config {
	return Config{
		Policy: "kernel-follow", SinkForm: sink.UpdateForm.String(), SinkSoc: "910B", CacheType: 3, LocalSlots: 1, GlobalSlots: 5, CacheSlotBytes: 10240,
		SetupReuse: true, RunnerPool: 64, HostBlocks: MinHostBlocks, DeviceBlocks: MinDeviceBlocks,
		Solver: mempool.Optimal, WorkspaceGlobal: true, ShuffleK: true, CommID: "127.0.0.1:10067",
	}
}

// ConfigFromEnv reads every variable of Variables through lookup, which is
// os.LookupEnv or a function of the same kind. It is pure. Nothing is clamped:
// every bad value is an error that names the variable, the value and what is
// allowed, and all of them are joined in one error, which is ErrInvalidParam.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	if lookup == nil {
		return DefaultConfig(), status.Errorf(status.ErrInvalidParam, "configuration: want a lookup function, got nil")
	}
	c, err := DefaultConfig().over(lookup)
	if err != nil {
		return DefaultConfig(), err
	}
	return c, nil
}

// over reads the variables over c.
func (c Config) over(lookup func(string) (string, bool)) (_ Config, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = configError([]error{fmt.Errorf("the lookup function panicked: %v", r)})
		}
	}()
	if c.sources == nil {
		c.sources = map[string]string{}
	}
	var errs []error
	for i := range variables {
		if err := c.read(&variables[i], lookup); err != nil {
			errs = append(errs, err)
		}
	}
	if err := c.resolvePolicy(lookup); err != nil {
		errs = append(errs, err)
	}
	return c, configError(errs)
}

func configError(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return &status.OpError{Code: status.ErrInvalidParam, Stage: "configuration", Err: errors.Join(errs...)}
}

// read sets one variable. Two spellings with different values are an error.
func (c *Config) read(v *variable, lookup func(string) (string, bool)) error {
	value, from := "", ""
	for _, name := range append([]string{v.Name}, v.Aliases...) {
		s, ok := lookup(name)
		if !ok {
			continue
		}
		if from != "" && s != value {
			return fmt.Errorf("%s=%q and %s=%q contradict each other", from, value, name, s)
		}
		value, from = s, name
	}
	if from == "" {
		return nil
	}
	if !v.set(c, value) {
		return fmt.Errorf("%s=%q: want %s", from, value, v.Range)
	}
	c.sources[v.Name] = from
	return nil
}

// pair is the older pair of variables that names a policy: 1 set on, 0 set off,
// -1 unset.
type pair struct{ withTiling, copyStream int }

func readPair(lookup func(string) (string, bool)) (pair, error) {
	p := pair{-1, -1}
	var errs []error
	for _, v := range [...]struct {
		name string
		to   *int
	}{{envWithTiling, &p.withTiling}, {envCopyStream, &p.copyStream}} {
		s, ok := lookup(v.name)
		switch {
		case !ok:
		case s == "0":
			*v.to = 0
		case s == "1":
			*v.to = 1
		default:
			errs = append(errs, fmt.Errorf("%s=%q: want 0 or 1", v.name, s))
		}
	}
	return p, errors.Join(errs...)
}

// policy is what the pair asks for, "" when the two contradict each other.
func (p pair) policy() string {
	switch {
	case p.copyStream == 1 && p.withTiling == 1:
		return ""
	case p.copyStream == 1:
		return "multi-stream"
	case p.withTiling == 0:
		return "overall"
	}
	return "kernel-follow"
}

// resolvePolicy joins ATB_TILING_POLICY with the older pair of variables.
func (c *Config) resolvePolicy(lookup func(string) (string, bool)) error {
	p, err := readPair(lookup)
	if err != nil {
		return err
	}
	if p == (pair{-1, -1}) {
		return nil
	}
	from := strings.TrimSuffix(p.describe(), " ")
	if p.policy() == "" {
		if c.sources[envPolicy] != "" {
			from = envPolicy + "=" + c.Policy + " " + from
		}
		return fmt.Errorf("%s contradict each other", from)
	}
	if c.sources[envPolicy] != "" && c.Policy != p.policy() {
		return fmt.Errorf("%s=%s contradicts %s, which mean %s", envPolicy, c.Policy, from, p.policy())
	}
	if c.sources[envPolicy] == "" {
		c.Policy, c.sources[envPolicy] = p.policy(), from
	}
	return nil
}

func (p pair) describe() string {
	s := ""
	for _, v := range [...]struct {
		name  string
		value int
	}{{envWithTiling, p.withTiling}, {envCopyStream, p.copyStream}} {
		if v.value >= 0 {
			s += v.name + "=" + strconv.Itoa(v.value) + " "
		}
	}
	return s
}

// Validate checks a configuration that code has made. Errors name every bad
// value and are ErrInvalidParam.
func (c *Config) Validate() error {
	if err := status.Given("validate configuration", "c", c); err != nil {
		return err
	}
	var errs []error
	var probe Config
	for i := range variables {
		if v := &variables[i]; !v.set(&probe, v.get(c)) {
			errs = append(errs, fmt.Errorf("%s=%q: want %s", v.Name, v.get(c), v.Range))
		}
	}
	if c.RequireSink && c.SinkForm == sink.V2Form.String() {
		errs = append(errs, fmt.Errorf("%s=1 and %s=%s contradict each other: form v2 computes tilings on the host", envRequireSink, envSinkForm, c.SinkForm))
	}
	return configError(errs)
}
