package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"goatb/bench/roofline"
	shapes "goatb/model/decoder"
	"goatb/model/llama"
	"goatb/tensor"
)

// modelReport is what a model reaches with weights of one format. Times are
// nanoseconds, sizes bytes, rates GB/s and GFLOP/s. A fraction is the time that the
// limit took in the same run divided by the time taken.
type modelReport struct {
	Model   string `json:"model"`
	Weights string `json:"weights"`
	DType   string `json:"dtype"`
	Threads int    `json:"threads"`
	// StepNS is the time of decoding a token, ReadNS that of reading as many bytes.
	StepNS       int64   `json:"step_ns"`
	ReadNS       int64   `json:"read_ns"`
	StepBytes    int64   `json:"step_bytes"`
	TokensPerS   float64 `json:"tokens_per_s"`
	GBytes       float64 `json:"gbytes_per_s"`
	ReadGBytes   float64 `json:"read_gbytes_per_s"`
	StepFraction float64 `json:"step_fraction"`
	// PrefillNS is the time of a prompt, ProductsNS that of its products alone.
	Prompt          int     `json:"prompt"`
	PrefillNS       int64   `json:"prefill_ns"`
	ProductsNS      int64   `json:"products_ns"`
	PrefillTokens   float64 `json:"prefill_tokens_per_s"`
	PrefillGFlops   float64 `json:"prefill_gflops"`
	ProductsGFlops  float64 `json:"products_gflops"`
	PrefillFraction float64 `json:"prefill_fraction"`
	// ResidentBytes is by how much the process grew, -1 where the system does not tell.
	WeightBytes    int64 `json:"weight_bytes"`
	CacheBytes     int64 `json:"cache_bytes"`
	WorkspaceBytes int64 `json:"workspace_bytes"`
	ResidentBytes  int64 `json:"resident_bytes"`
}

// llamaConfig is a shape that package llama can run, with so many positions.
func llamaConfig(name string, positions int) (llama.Config, error) {
	s, err := shapes.ByName(name)
	if err != nil {
		return llama.Config{}, err
	}
	c := llama.Config{
		Dim: s.Hidden, Hidden: s.Intermediate, Layers: s.Layers, Heads: s.Heads, KVHeads: s.KVHeads, Vocab: s.Vocab, MaxSeq: positions,
		Epsilon: float32(s.Epsilon), RopeBase: s.RopeBase, SharedClassifier: s.Tied,
	}
	if s.Latent.Rank > 0 || s.Experts.Count > 0 || s.QKNorm || s.HeadDim != c.HeadDim() {
		return c, fmt.Errorf("model %s: want a Llama: no experts, no latent attention, no norms of heads and a head width of hidden size / heads", name)
	}
	return c, c.Validate()
}

// formatOf reads a format of weights: a float type, or int8 or int4 beside
// activations of type dtype.
func formatOf(weights, dtype string) (llama.Format, error) {
	if t, err := tensor.ParseDType(weights); err == nil && t.IsFloat() {
		return llama.Format{DType: t}, nil
	}
	f, err := llama.ParseWeightFormat(weights)
	if err != nil || f == llama.AsActivations {
		return llama.Format{}, fmt.Errorf("--weights: want f32, f16, bf16, int8 or int4, got %q", weights)
	}
	t, err := tensor.ParseDType(dtype)
	return llama.Format{DType: t, Weights: f}, err
}

// models measures a model with weights of each format.
func (r *rooflineCmd) models(ctx context.Context, out output) error {
	if r.Prompt < 1 {
		return fmt.Errorf("--prompt: want at least 1 token, got %d", r.Prompt)
	}
	config, err := llamaConfig(r.Model, r.Prompt+1)
	if err != nil {
		return fmt.Errorf("--model: %w", err)
	}
	source, err := llama.NewSeeded(config, 1)
	if err != nil {
		return err
	}
	var formats []llama.Format
	for _, w := range r.Weights {
		f, err := formatOf(w, r.Dtype)
		if err != nil {
			return err
		}
		formats = append(formats, f)
	}
	rep := rooflineReport{Schema: 1, Command: "roofline", Machine: roofline.Machine(), Peaks: map[string]limitReport{}, Kernels: []kernelReport{}}
	for _, n := range r.Threads {
		for i, f := range formats {
			fmt.Fprintf(out.stderr, "%d threads, weights of %s\n", n, r.Weights[i])
			row, err := roofline.MeasureModel(ctx, &roofline.ModelCase{Source: source, Format: f, Prompt: r.Prompt}, n, r.Time)
			if err != nil {
				return err
			}
			rep.Models = append(rep.Models, modelRow(r.Model, r.Weights[i], r.Prompt, &row))
		}
	}
	if r.JSON {
		return writeJSON(out.stdout, &rep)
	}
	fmt.Fprintln(out.stdout, rep.Machine)
	return printModels(out.stdout, rep.Models)
}

func modelRow(name, weights string, prompt int, row *roofline.ModelRow) modelReport {
	step, read := float64(row.Step.Nanoseconds()), float64(row.ReadStep.Nanoseconds())
	prefill, products := float64(row.Prefill.Nanoseconds()), float64(row.Products.Nanoseconds())
	return modelReport{
		Model: name, Weights: weights, DType: row.Format.DType.String(), Threads: row.Threads,
		StepNS: row.Step.Nanoseconds(), ReadNS: row.ReadStep.Nanoseconds(), StepBytes: row.StepBytes,
		TokensPerS: 1e9 / step, GBytes: float64(row.StepBytes) / step, ReadGBytes: float64(row.StepBytes) / read, StepFraction: row.StepFraction,
		Prompt: prompt, PrefillNS: row.Prefill.Nanoseconds(), ProductsNS: row.Products.Nanoseconds(), PrefillTokens: 1e9 * float64(prompt) / prefill,
		PrefillGFlops: row.PrefillFlops / prefill, ProductsGFlops: row.PrefillFlops / products, PrefillFraction: row.PrefillFraction,
		WeightBytes: row.Weights, CacheBytes: row.Cache, WorkspaceBytes: row.Workspace, ResidentBytes: row.Resident,
	}
}

func printModels(w io.Writer, rows []modelReport) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "weights\tdtype\tthreads\ttokens/s\tMB/token\tGB/s\tread GB/s\tfraction\tprefill tokens/s\tGFLOP/s\tproducts GFLOP/s\tfraction\tweights MB\tcache\tworkspace\tsum\tresident\t")
	for i := range rows {
		r := &rows[i]
		const mb = 1e6
		sum := r.WeightBytes + r.CacheBytes + r.WorkspaceBytes
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.0f\t%.1f\t%.1f\t%.2f\t%.0f\t%.1f\t%.1f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", r.Weights, r.DType, r.Threads,
			r.TokensPerS, float64(r.StepBytes)/mb, r.GBytes, r.ReadGBytes, r.StepFraction,
			r.PrefillTokens, r.PrefillGFlops, r.ProductsGFlops, r.PrefillFraction,
			float64(r.WeightBytes)/mb, float64(r.CacheBytes)/mb, float64(r.WorkspaceBytes)/mb, float64(sum)/mb, float64(r.ResidentBytes)/mb)
	}
	return t.Flush()
}
