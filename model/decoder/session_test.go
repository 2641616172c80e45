package decoder

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device"
	"goatb/device/cpu"
	"goatb/device/sim"
	"goatb/device/sim/profile"
	"goatb/device/trace"
	"goatb/tensor"
)

// tiny are small models of every form.
var tiny = map[string]string{
	"dense":   `{"hidden_size":32,"intermediate_size":48,"num_hidden_layers":3,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":50,"tie_word_embeddings":true}`,
	"norms":   `{"model_type":"qwen3","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":50}`,
	"latent":  `{"hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":50,"kv_lora_rank":16,"qk_rope_head_dim":8,"qk_nope_head_dim":12,"v_head_dim":10}`,
	"experts": `{"hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":50,"n_routed_experts":8,"num_experts_per_tok":8,"n_shared_experts":1,"moe_intermediate_size":16,"first_k_dense_replace":1}`,
}

func shapeOf(t *testing.T, name string) Shape {
	t.Helper()
	s, err := Parse(name, []byte(tiny[name]))
	require.NoError(t, err)
	return s
}

// session opens a device and a session; what is random in it depends on the shape
// alone.
func session(t *testing.T, dev device.Device, s Shape, l Load) *Session {
	t.Helper()
	c, err := atb.NewContext(dev)
	require.NoError(t, err)
	x, err := NewSession(c, s, l, tensor.Float32)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, x.Close())
		require.NoError(t, x.Close())
		require.NoError(t, c.Close())
		require.NoError(t, dev.Close())
	})
	return x
}

func inline(t *testing.T) device.Device {
	t.Helper()
	d, err := cpu.New(cpu.WithInline(), cpu.WithWorkers(2))
	require.NoError(t, err)
	return d
}

// fill gives every weight and table random values, by its name.
func (s *Session) fill(t *testing.T) {
	random := func(x *atb.Tensor, name string) {
		scale := map[string]float32{"table": 1, "cosines": 0.7, "sines": 0.7, "gamma": 1, "head_gamma": 1}[name]
		if scale == 0 {
			scale = 0.2
		}
		h := fnv.New64()
		_, err := h.Write([]byte(name))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(h.Sum64(), 3))
		for i, f := 0, device.View[float32](x.Data.Bytes()); i < len(f); i++ {
			f[i] = float32(rng.NormFloat64()) * scale
		}
	}
	for name, x := range s.inputs() {
		random(x, name)
	}
}

// inputs are the weights and tables by name, those of layers with their numbers.
func (s *Session) inputs() map[string]*atb.Tensor {
	out := map[string]*atb.Tensor{}
	note := func(c *call, names []string, layer int) {
		for i, n := range names {
			x := &c.pack.In[i]
			switch {
			case x.Desc.DType != tensor.Float32 || x.Desc.Rank() == 4 || n == "x" || n == "cos" || n == "sin" || n == "mask" || n == "classifier" && s.shape.Tied:
				continue
			case layer >= 0 && !slices.Contains(shared, n):
				n = numbered(n, layer)
			}
			out[n] = x
		}
	}
	rows, prompt := s.load.rows(), s.load.prompt()
	if s.load.Whole {
		for i, p := range s.shape.pieces(rows, prompt) {
			note(&s.calls[i], p.inputs(), -1)
		}
		return out
	}
	note(&s.calls[0], embedInputs, -1)
	for l := range s.shape.Layers {
		note(&s.calls[1+l], s.shape.layerInputs(l, rows), l)
	}
	note(&s.calls[len(s.calls)-1], append([]string{"x"}, headInputs...), -1)
	return out
}

func (s *Session) result(t *testing.T) []float32 {
	t.Helper()
	f, err := atb.ToFloats(t.Context(), s.c, s.logits)
	require.NoError(t, err)
	return f
}

// TestPromptEqualsDecoding runs a prompt at once, and token by token: the logits
// of the last token are the same but for rounding.
func TestPromptEqualsDecoding(t *testing.T) {
	const n = 5
	for name := range tiny {
		t.Run(name, func(t *testing.T) {
			s := shapeOf(t, name)
			whole := session(t, inline(t), s, Load{Batch: 2, Prompt: n, Steps: 1})
			whole.fill(t)
			require.NoError(t, whole.Step(t.Context()))
			each := session(t, inline(t), s, Load{Batch: 2, Steps: n})
			each.fill(t)
			for range n {
				require.NoError(t, each.Step(t.Context()))
			}
			want := each.result(t)
			assert.NotZero(t, want[3])
			assert.InDeltaSlice(t, want, whole.result(t), 2e-4, "float32 sums of a few dozen terms in another order")
			require.ErrorContains(t, each.Step(t.Context()), "room for 5 steps")
			each.Rewind()
			require.NoError(t, each.Step(t.Context()))
		})
	}
}

// TestWholeModelIsOneOperation gives the same bits as an operation for each layer.
func TestWholeModelIsOneOperation(t *testing.T) {
	for name := range tiny {
		s := shapeOf(t, name)
		layers := session(t, inline(t), s, Load{Batch: 3, Context: 4, Steps: 2})
		whole := session(t, inline(t), s, Load{Batch: 3, Context: 4, Steps: 2, Whole: true})
		require.Len(t, layers.Operations(), s.Layers+2)
		require.Len(t, whole.Operations(), 1)
		for _, x := range []*Session{layers, whole} {
			x.fill(t)
			require.NoError(t, x.Step(t.Context()))
			require.NoError(t, x.Step(t.Context()))
		}
		require.Equal(t, layers.result(t), whole.result(t), name)
	}
}

// TestManyLayersAreSeveralOperations when one cannot have all inputs.
func TestManyLayersAreSeveralOperations(t *testing.T) {
	s := shapeOf(t, "dense")
	s.Layers = 90
	layers := session(t, inline(t), s, Load{Batch: 1, Context: 1, Steps: 1})
	whole := session(t, inline(t), s, Load{Batch: 1, Context: 1, Steps: 1, Whole: true})
	require.Len(t, whole.Operations(), 3)
	for _, x := range []*Session{layers, whole} {
		x.fill(t)
		require.NoError(t, x.Step(t.Context()))
	}
	require.NotZero(t, whole.result(t)[0])
	require.Equal(t, layers.result(t), whole.result(t))
	require.NotNil(t, whole.Layer().Workspace())
}

// TestKernelsOfALayer is what the simulated device sees of a step.
func TestKernelsOfALayer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		prompt int
		want   []string
	}{
		{"dense", 0, []string{"rmsnorm", "matmul", "split", "rope", "cachescatter", "paged", "matmul", "rmsnorm", "matmul", "swiglu", "matmul", "binary"}},
		{"norms", 0, []string{"rmsnorm", "matmul", "split", "rmsnorm", "rmsnorm", "rope", "cachescatter", "paged", "matmul", "rmsnorm", "matmul", "swiglu", "matmul", "binary"}},
		{"dense", 7, []string{"rmsnorm", "matmul", "split", "rope", "cachescatter", "attention", "matmul", "rmsnorm", "matmul", "swiglu", "matmul", "binary"}},
		{"experts", 0, []string{"rmsnorm", "matmul", "split", "rope", "cachescatter", "paged", "matmul", "rmsnorm", "matmul", "matmul", "swiglu", "matmul", "binary"}},
		{"latent", 0, []string{"rmsnorm", "matmul", "split", "matmul", "split", "rmsnorm", "rope", "matmul", "join", "join", "cachescatter", "paged", "matmul", "matmul", "rmsnorm", "matmul", "swiglu", "matmul", "binary"}},
	} {
		p, err := profile.ByName("ascend910b")
		require.NoError(t, err)
		rec := trace.New("layer", 0)
		dev, err := sim.New(p, sim.WithNumerics(false), sim.WithRecorder(rec))
		require.NoError(t, err)
		s := shapeOf(t, tt.name)
		x := session(t, dev, s, Load{Batch: 1, Prompt: tt.prompt, Steps: 1})
		require.NoError(t, x.Step(t.Context()))
		var got []string
		for _, k := range rec.Tasks() {
			if k.Kind == "launch" && k.Label.Op == "layer" {
				got = append(got, family(k.Label.Kernel))
			}
		}
		last := got[len(got)-len(tt.want):]
		require.Equal(t, tt.want, last, tt.name)
	}
}

func family(kernel string) string {
	for i := range kernel {
		if kernel[i] == '/' {
			return kernel[:i]
		}
	}
	return kernel
}

func TestObserver(t *testing.T) {
	x := session(t, inline(t), shapeOf(t, "dense"), Load{Batch: 1, Steps: 1})
	var stages []string
	x.Observe = func(s Span) {
		require.False(t, s.End.Before(s.Start))
		stages = append(stages, s.Stage+" "+s.Op)
	}
	require.NoError(t, x.Step(t.Context()))
	require.Equal(t, []string{
		"setup embed", "setup layer", "setup layer", "setup layer", "setup head",
		"execute embed", "execute layer", "execute layer", "execute layer", "execute head", "wait ",
	}, stages)
}

func TestRefusedLoads(t *testing.T) {
	dev := inline(t)
	defer dev.Close()
	c, err := atb.NewContext(dev)
	require.NoError(t, err)
	defer c.Close()
	s := shapeOf(t, "dense")
	for want, l := range map[string]Load{
		"batch":     {Steps: 1},
		"context":   {Batch: 1, Context: -1, Steps: 1},
		"steps":     {Batch: 1},
		"a prompt":  {Batch: 1, Context: 5, Prompt: 6, Steps: 1},
		"positions": {Batch: 60000, Context: 1 << 20, Steps: 1},
	} {
		_, err := NewSession(c, s, l, tensor.Float32)
		require.ErrorContains(t, err, want)
	}
	_, err = NewSession(nil, s, Load{Batch: 1, Steps: 1}, tensor.Float32)
	require.ErrorContains(t, err, "context")
	s.Layers = 0
	_, err = NewSession(c, s, Load{Batch: 1, Steps: 1}, tensor.Float32)
	require.ErrorContains(t, err, "num_hidden_layers")
}
