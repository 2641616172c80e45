package context

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"goatb/mempool"
	"goatb/tiling"
	"goatb/tiling/sink"
)

const (
	envPolicy     = "ATB_TILING_POLICY"
	envWithTiling = "ATB_LAUNCH_KERNEL_WITH_TILING"
	envCopyStream = "ATB_USE_TILING_COPY_STREAM"

	envSinkForm    = "ATB_DEVICE_SINK_FORM"
	envSinkOption  = "ATB_TILING_SCHEDULE_OPTIMIZE"
	envSinkSoc     = "ATB_DEVICE_SINK_SOC"
	envRequireSink = "ATB_DEVICE_SINK_REQUIRE"
)

// Variable describes one environment variable.
type Variable struct {
	// Name is the variable, Aliases other spellings of it.
	Name    string
	Aliases []string
	// Range says what values are allowed and Meaning what they do.
	Range, Meaning string
	// Default is the value when the variable is unset, Value the one in force.
	Default, Value string
	// Source is the variable or option that gave the value, "default" else.
	Source string
}

type variable struct {
	Variable
	// set reports whether the text is a value of the variable.
	set func(*Config, string) bool
	get func(*Config) string
}

// variables is the one list of what the environment can set.
var variables = []variable{
	{Variable{Name: envPolicy, Range: "overall, multi-stream, kernel-follow, kernel or device-sink", Meaning: "how tilings reach the device"},
		setPolicy, func(c *Config) string { return c.Policy }},
	{Variable{Name: envSinkForm, Range: "update, ffts, superkernel or v2", Meaning: "how device-sink makes graphs"},
		setSinkForm, func(c *Config) string { return c.SinkForm }},
	{Variable{Name: envSinkOption, Range: `"", 0 or 1`, Meaning: "ge.tiling_schedule_optimize of the session: 1 tiles on the device what can be, which policy device-sink asks for by itself; 0 does not"},
		setSinkOption, func(c *Config) string { return c.SinkOption }},
	{Variable{Name: envSinkSoc, Range: "an Ascend chip, such as 910B3 or 310P", Meaning: "the chip that task lists of device-sink are made for"},
		setSinkSoc, func(c *Config) string { return c.SinkSoc }},
	boolVar(envRequireSink, "it is an error that device-sink leaves a tiling that reads values on the host", func(c *Config) *bool { return &c.RequireSink }),
	intVar("ATB_DEVICE_SINK_DEADLINE_MS", 0, maxSinkDeadline, "time that a tiling may take on the device, 0 is the device's default", func(c *Config) *int { return &c.SinkDeadline }),
	intVar("ATB_OPSRUNNER_KERNEL_CACHE_TYPE", 0, 3, "tiling cache levels: 0 none, 1 local, 2 global, 3 both", func(c *Config) *int { return &c.CacheType }),
	intVar("ATB_OPSRUNNER_KERNEL_CACHE_LOCAL_COUNT", 1, 1024, "local tiling slots per kernel", func(c *Config) *int { return &c.LocalSlots }),
	withAlias(intVar("ATB_OPSRUNNER_KERNEL_CACHE_GLOBAL_COUNT", 1, 1024, "global tiling slots per kernel of an operation type", func(c *Config) *int { return &c.GlobalSlots }), "ATB_OPSRUNNER_KERNEL_CACHE_GLOABL_COUNT"),
	int64Var("ATB_OPSRUNNER_KERNEL_CACHE_TILING_SIZE", 1, 1<<30, "largest tiling in bytes that a cache slot takes", func(c *Config) *int64 { return &c.CacheSlotBytes }),
	boolVar("ATB_OPSRUNNER_SETUP_CACHE_ENABLE", "an unchanged operation skips its Setup", func(c *Config) *bool { return &c.SetupReuse }),
	intVar("ATB_RUNNER_POOL_SIZE", 0, 1024, "idle runners kept per operation type, 0 is off", func(c *Config) *int { return &c.RunnerPool }),
	intVar("ATB_HOST_TILING_BUFFER_BLOCK_NUM", MinHostBlocks, MaxHostBlocks, "blocks of 3 MiB in the host tiling ring", func(c *Config) *int { return &c.HostBlocks }),
	intVar("ATB_DEVICE_TILING_BUFFER_BLOCK_NUM", MinDeviceBlocks, MaxDeviceBlocks, "blocks of 3 MiB in the device tiling ring", func(c *Config) *int { return &c.DeviceBlocks }),
	boolVar("ATB_WORKSPACE_MEM_ALLOC_GLOBAL", "one workspace plan for the whole tree of operations, or one per operation", func(c *Config) *bool { return &c.WorkspaceGlobal }),
	{Variable{Name: "ATB_WORKSPACE_MEM_ALLOC_ALG_TYPE", Range: "an integer 0 to 4", Meaning: "workspace solver: 0 brute force, 1 first fit, 2 best fit, 3 intervals, 4 optimal"},
		setSolver, func(c *Config) string { return strconv.Itoa(int(c.Solver)) }},
	boolVar("ATB_STREAM_SYNC_EVERY_KERNEL_ENABLE", "wait for the stream after each kernel", func(c *Config) *bool { return &c.SyncKernel }),
	boolVar("ATB_STREAM_SYNC_EVERY_RUNNER_ENABLE", "wait for the stream after each operation of a graph", func(c *Config) *bool { return &c.SyncRunner }),
	boolVar("ATB_STREAM_SYNC_EVERY_OPERATION_ENABLE", "wait for the streams after each Execute", func(c *Config) *bool { return &c.SyncOperation }),
	boolVar("ATB_COMPARE_TILING_EVERY_KERNEL", "compare device tilings before and after each kernel", func(c *Config) *bool { return &c.CompareTiling }),
	boolVar("ATB_MATMUL_SHUFFLE_K_ENABLE", "rotate the K loop of matrix products per block; results do not depend on it", func(c *Config) *bool { return &c.ShuffleK }),
	boolVar("ASDOPS_QUANT_MIN_NEG_127", "int8 quantisation goes down to -127 instead of -128", func(c *Config) *bool { return &c.QuantMinNeg127 }),
	textVar("ATB_SHARE_MEMORY_NAME_SUFFIX", "tells the shared memory of several users apart", func(c *Config) *string { return &c.ShareMemorySuffix }),
	textVar("ATB_HOME_PATH", "accepted and unused: the dtype tables are built in", func(c *Config) *string { return &c.HomePath }),
	boolVar("LCCL_DETERMINISTIC", "collectives reduce in a fixed order", func(c *Config) *bool { return &c.CommDeterministic }),
	boolVar("LCCL_PARALLEL", "communication domains run side by side", func(c *Config) *bool { return &c.CommParallel }),
	{Variable{Name: "LCAL_COMM_ID", Range: "<ipv4>:<port>", Meaning: "address where ranks of a communication domain meet"},
		setCommID, func(c *Config) string { return c.CommID }},
}

// Variables describes every variable with the value that c has for it. The
// older pair of policy variables comes last: their values show the policy.
func (c *Config) Variables() []Variable {
	if c == nil {
		return nil
	}
	def := DefaultConfig()
	list := make([]Variable, 0, len(variables)+2)
	for i := range variables {
		v := variables[i].Variable
		v.Default, v.Value = variables[i].get(&def), variables[i].get(c)
		v.Source = c.source(v.Name, v.Default != v.Value)
		list = append(list, v)
	}
	policySource := c.source(envPolicy, c.Policy != def.Policy)
	older := func(name, def string, on bool, meaning string) Variable {
		value := "0"
		if on {
			value = "1"
		}
		return Variable{Name: name, Range: "0 or 1", Meaning: meaning, Default: def, Value: value, Source: policySource}
	}
	return append(list,
		older(envWithTiling, "1", c.Policy == "kernel-follow", "1: tilings travel with the launch; an older way to name the policy"),
		older(envCopyStream, "0", c.Policy == "multi-stream", "1: tilings are copied on a stream of their own; an older way to name the policy"))
}

// spellings lists the variables that say the same thing: the spellings of each,
// and those that name the policy.
func spellings() [][]string {
	groups := [][]string{{envPolicy, envWithTiling, envCopyStream}}
	for i := range variables {
		groups = append(groups, append([]string{variables[i].Name}, variables[i].Aliases...))
	}
	return groups
}

// known reports whether there is a variable of that name.
func known(name string) bool {
	return slices.ContainsFunc(spellings(), func(g []string) bool { return slices.Contains(g, name) })
}

func (c *Config) source(name string, changed bool) string {
	if s := c.sources[name]; s != "" {
		return s
	}
	if changed {
		return "option"
	}
	return "default"
}

func setPolicy(c *Config, s string) bool {
	p, err := tiling.ByName(s)
	if err == nil {
		c.Policy = p.Name()
	}
	return err == nil
}

func setSinkForm(c *Config, s string) bool {
	f, err := sink.ParseForm(s)
	if err == nil {
		c.SinkForm = f.String()
	}
	return err == nil
}

func setSinkOption(c *Config, s string) bool {
	_, err := sink.ParseSetting(s)
	if err == nil {
		c.SinkOption = s
	}
	return err == nil
}

func setSinkSoc(c *Config, s string) bool {
	_, err := sink.ProfileOf(s)
	if err == nil {
		c.SinkSoc = s
	}
	return err == nil
}

func setSolver(c *Config, s string) bool {
	n, ok := parseInt(s, 0, int64(mempool.Optimal))
	if ok {
		c.Solver = mempool.SolverType(n)
	}
	return ok
}

func setCommID(c *Config, s string) bool {
	a, err := netip.ParseAddrPort(s)
	ok := err == nil && a.Addr().Is4()
	if ok {
		c.CommID = s
	}
	return ok
}

func intVar(name string, lo, hi int, meaning string, at func(*Config) *int) variable {
	return variable{Variable{Name: name, Range: fmt.Sprintf("an integer %d to %d", lo, hi), Meaning: meaning},
		func(c *Config, s string) bool {
			n, ok := parseInt(s, int64(lo), int64(hi))
			if ok {
				*at(c) = int(n)
			}
			return ok
		},
		func(c *Config) string { return strconv.Itoa(*at(c)) }}
}

func int64Var(name string, lo, hi int64, meaning string, at func(*Config) *int64) variable {
	return variable{Variable{Name: name, Range: fmt.Sprintf("an integer %d to %d", lo, hi), Meaning: meaning},
		func(c *Config, s string) bool {
			n, ok := parseInt(s, lo, hi)
			if ok {
				*at(c) = n
			}
			return ok
		},
		func(c *Config) string { return strconv.FormatInt(*at(c), 10) }}
}

func boolVar(name, meaning string, at func(*Config) *bool) variable {
	return variable{Variable{Name: name, Range: "0 or 1", Meaning: meaning},
		func(c *Config, s string) bool {
			if s != "0" && s != "1" {
				return false
			}
			*at(c) = s == "1"
			return true
		},
		func(c *Config) string {
			if *at(c) {
				return "1"
			}
			return "0"
		}}
}

func textVar(name, meaning string, at func(*Config) *string) variable {
	return variable{Variable{Name: name, Range: fmt.Sprintf("text of at most %d bytes", maxText), Meaning: meaning},
		func(c *Config, s string) bool {
			if len(s) > maxText {
				return false
			}
			*at(c) = s
			return true
		},
		func(c *Config) string { return *at(c) }}
}

func withAlias(v variable, alias string) variable {
	v.Aliases = []string{alias}
	return v
}

// parseInt reads decimal digits only: no sign, no blanks.
func parseInt(s string, lo, hi int64) (int64, bool) {
	for _, ch := range []byte(s) {
		if ch < '0' || ch > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= lo && n <= hi
}
