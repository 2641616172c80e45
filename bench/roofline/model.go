package roofline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/internal/asm/gemm"
	features "goatb/internal/cpu"
	"goatb/model/llama"
)

// ModelCase is a model with random weights: a prompt and the steps behind it.
type ModelCase struct {
	// Source gives the weights, Format says how they are stored.
	Source llama.Source
	Format llama.Format
	// Prompt is the number of tokens that are there before a step.
	Prompt int
}

// ModelRow is what a model reaches. Fractions are the median time of the limit,
// measured in turns, divided by the median time of the work.
type ModelRow struct {
	Format  llama.Format
	Threads int
	// Step is the time of decoding a token behind the prompt, which reads StepBytes
	// of matrices, keys and values; ReadStep is the time of reading as many bytes
	// of the matrices' own memory, by as many threads.
	Step, ReadStep time.Duration
	StepBytes      int64
	StepFraction   float64
	// Prefill is the time of the prompt, whose products take PrefillFlops;
	// Products is the time of the same products alone.
	Prefill, Products time.Duration
	PrefillFlops      float64
	PrefillFraction   float64
	// Weights, Cache and Workspace are bytes that were taken for them, Resident is
	// by how much the process grew meanwhile: -1 where the system does not tell.
	Weights, Cache, Workspace, Resident int64
}

// MeasureModel uploads a model to a device of so many threads and measures prompts
// and steps in turns with their limits, for about the given time each but no fewer
// than three prompts and nine steps.
func MeasureModel(ctx context.Context, c *ModelCase, threads int, budget time.Duration) (row ModelRow, err error) {
	if c.Source == nil || c.Prompt < 1 {
		return row, fmt.Errorf("model: want weights and a prompt of at least 1 token, got %d", c.Prompt)
	}
	before := resident()
	r, err := openModel(c, threads)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	row = ModelRow{Format: c.Format, Threads: threads, Weights: r.m.Bytes(), Cache: r.s.CacheBytes()}
	if err := r.prefill(ctx); err != nil {
		return row, err
	}
	if err := r.step(ctx); err != nil {
		return row, err
	}
	row.Workspace = r.c.Stats().WorkspaceBytes
	row.Resident = -1
	if before >= 0 {
		runtime.GC()
		row.Resident = resident() - before
	}
	row.StepBytes = r.stepBytes()
	if row.Step, row.ReadStep, err = inTurns(ctx, leastSteps, budget, r.decode, r.read); err != nil {
		return row, err
	}
	row.StepFraction = float64(row.ReadStep) / float64(row.Step)
	p, err := newProducts(r.c, r.m, int64(c.Prompt))
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	row.PrefillFlops = p.flops
	if row.Prefill, row.Products, err = inTurns(ctx, leastPrefills, budget, r.prefill, p.run); err != nil {
		return row, err
	}
	row.PrefillFraction = float64(row.Products) / float64(row.Prefill)
	return row, nil
}

// Others on the machine may disturb a turn: medians of fewer would be theirs.
const (
	leastSteps    = 9
	leastPrefills = 3
)

// inTurns runs two functions in turns, at least so many, and returns the medians of
// their times.
func inTurns(ctx context.Context, least int, budget time.Duration, work, limit func(context.Context) error) (time.Duration, time.Duration, error) {
	var times, limits []time.Duration
	for start := time.Now(); len(times) < least || time.Since(start) < budget; {
		for _, f := range [...]struct {
			run func(context.Context) error
			to  *[]time.Duration
		}{{limit, &limits}, {work, &times}} {
			at := time.Now()
			if err := f.run(ctx); err != nil {
				return 0, 0, err
			}
			*f.to = append(*f.to, time.Since(at))
		}
	}
	return Median(times), Median(limits), nil
}

// runningModel is a model with a session of one sequence.
type runningModel struct {
	dev *cpu.Device
	c   *atb.Context
	m   *llama.Model
	s   *llama.Session
	// sampler takes the likeliest token.
	sampler *llama.Sampler
	prompt  []llama.Row
	last    []int32
	next    [1]llama.Row
	size    int64 // of an element of the cache
	// parts are the pieces of memory that each thread reads.
	parts [][][]byte
}

func openModel(c *ModelCase, threads int) (*runningModel, error) {
	dev, err := cpu.New(cpu.WithWorkers(threads))
	if err != nil {
		return nil, err
	}
	r := &runningModel{dev: dev, last: []int32{int32(c.Prompt - 1)}, size: c.Format.DType.Size(), parts: make([][][]byte, threads)}
	if r.c, err = atb.NewContext(dev, atb.WithEnv(func(string) (string, bool) { return "", false })); err == nil {
		r.m, err = llama.UploadAs(r.c, c.Source, c.Format)
	}
	if err == nil {
		r.sampler, err = llama.NewSampler(0, 1, 0)
	}
	if err == nil {
		r.s, err = llama.NewSession(r.c, r.m, llama.Options{Sequences: 1, BlockSize: 16, Whole: true})
	}
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	for i := range c.Prompt {
		r.prompt = append(r.prompt, llama.Row{Token: int32((i*7919 + 1) % r.m.Config.Vocab)})
	}
	r.share()
	return r, nil
}

func (r *runningModel) close() error {
	var errs []error
	if r.s != nil {
		errs = append(errs, r.s.Close())
	}
	if r.m != nil {
		errs = append(errs, r.m.Close())
	}
	if r.c != nil {
		errs = append(errs, r.c.Close())
	}
	return errors.Join(append(errs, r.dev.Close())...)
}

// prefill computes the prompt anew.
func (r *runningModel) prefill(ctx context.Context) error {
	if err := r.s.Reset(0); err != nil {
		return err
	}
	_, err := r.s.Forward(ctx, r.prompt, r.last)
	return err
}

// step computes the token that is the likeliest behind those that are there.
func (r *runningModel) step(ctx context.Context) error {
	logits, err := r.s.Forward(ctx, r.next[:], []int32{0})
	if err != nil {
		return err
	}
	r.next[0].Token, err = r.sampler.Next(logits)
	return err
}

// decode is a step, always the same one behind the prompt.
func (r *runningModel) decode(ctx context.Context) error {
	if err := r.s.Rewind(0, r.s.Length(0)-len(r.prompt)); err != nil {
		return err
	}
	return r.step(ctx)
}

// stepBytes counts the matrices, and the keys and values of the prompt.
func (r *runningModel) stepBytes() int64 {
	c := &r.m.Config
	n := 2 * int64(c.Layers) * int64(c.KVDim()) * int64(len(r.prompt)) * r.size
	for _, x := range r.m.Matrices() {
		for _, t := range x.Tensors {
			n += t.Desc.Bytes()
		}
	}
	return n
}

// share gives each thread its parts of the matrices, and once more of the first
// ones until they are as many bytes as a step reads.
func (r *runningModel) share() {
	const grain = 256 // bytes of a turn of the loop that reads
	list, left := r.m.Matrices(), r.stepBytes()
	for i := 0; i < 2*len(list) && left > 0; i++ {
		for _, t := range list[i%len(list)].Tensors {
			b := t.Data.Bytes()
			part := int(min(int64(len(b)), left)) / len(r.parts) / grain * grain
			for j := range r.parts {
				if part > 0 {
					r.parts[j] = append(r.parts[j], b[j*part:(j+1)*part])
				}
			}
			left -= int64(part * len(r.parts))
		}
	}
}

// read reads as many bytes as a step, each thread its parts, without waiting for
// others.
func (r *runningModel) read(context.Context) error {
	loop := gemm.Read(features.Detected())
	if loop == nil {
		loop = sumWords
	}
	together(len(r.parts), func(i int) float64 {
		for _, p := range r.parts[i] {
			loop(&p[0], len(p))
		}
		return 0
	})
	return nil
}
