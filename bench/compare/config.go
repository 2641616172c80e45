package compare

import (
	"errors"
	"fmt"

	"github.com/google/uuid"

	"goatb/atb"
	"goatb/device/sim/profile"
	"goatb/model/decoder"
	"goatb/tensor"
	"goatb/tiling"
)

// Config is what is compared.
type Config struct {
	// Profile is the simulated device's, nil for the CPU device.
	Profile *profile.Profile
	// Workers is the number of the CPU device's workers, 0 for all processors.
	Workers int
	// Numerics computes values on the simulated device.
	Numerics bool
	Shape    decoder.Shape
	// DType is the type of weights and activations: f16, bf16 or f32.
	DType tensor.DType
	// Load is what a step computes; Load.Steps is the number of steps measured.
	Load decoder.Load
	// Policies are compared in this order.
	Policies []string
	// NoCaches switches the tiling caches off.
	NoCaches bool
	// NoReuse switches the reuse of unchanged Setups off.
	NoReuse bool
	// Variables are ATB_* variables of the contexts, by name. Policies beats
	// ATB_TILING_POLICY; older variables that name another policy are an error.
	Variables []Variable
	// Sensitivity measures again with each estimated parameter halved and
	// doubled. It is for the simulated device.
	Sensitivity bool
	// Timeline keeps what happened in the steps measured.
	Timeline bool
	// Progress, when not nil, is told what is measured next.
	Progress func(what string)
}

// Variable is a variable of a context with its value.
type Variable struct{ Name, Value string }

// maxSteps bounds the steps of one run.
const maxSteps = 1 << 20

// validate checks what the parts do not check themselves.
func (c *Config) validate() error {
	if len(c.Policies) == 0 {
		return errors.New("compare: want at least one policy")
	}
	for _, name := range c.Policies {
		if _, err := tiling.ByName(name); err != nil {
			return fmt.Errorf("compare: %w", err)
		}
	}
	if c.Load.Steps < 1 || c.Load.Steps > maxSteps {
		return fmt.Errorf("compare: want 1 to %d steps, got %d", maxSteps, c.Load.Steps)
	}
	if c.Sensitivity && c.Profile == nil {
		return errors.New("compare: sensitivities are for cost profiles, not for the CPU device")
	}
	return errors.Join(c.Shape.Validate(), c.Load.Validate())
}

// id names the configuration under a policy: the same configuration of the
// simulated device has the same name.
func (c *Config) id(policy string) uuid.UUID {
	if c.Profile == nil {
		return uuid.New()
	}
	text := fmt.Sprintf("%+v|%s|%+v|%+v|%t|%t|%t|%+v|%s", c.Shape, c.DType, c.Load, c.Profile.Costs(), c.Numerics, c.NoCaches, c.NoReuse, c.Variables, policy)
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte("goatb/compare|"+text))
}

// contextOptions are the options of a policy's context. The environment does not
// count: a comparison depends on its configuration alone.
func (c *Config) contextOptions(policy string) []atb.Option {
	opts := []atb.Option{atb.WithEnv(func(string) (string, bool) { return "", false }), atb.WithID(c.id(policy))}
	for _, v := range c.Variables {
		opts = append(opts, atb.WithVariable(v.Name, v.Value))
	}
	opts = append(opts, atb.WithPolicy(policy))
	if c.NoCaches {
		opts = append(opts, atb.WithTilingCaches(0))
	}
	if c.NoReuse {
		opts = append(opts, atb.WithSetupReuse(false))
	}
	return opts
}
