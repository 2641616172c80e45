package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/operation/catalog"
)

// compileSource is what a file of compile was made from: one of both.
type compileSource struct {
	// Graph is the graph file.
	Graph json.RawMessage `json:"graph,omitempty"`
	Model *modelSource    `json:"model,omitempty"`
}

// modelSource is a model with all that its steps depend on.
type modelSource struct {
	Config    llama.Config  `json:"config"`
	DType     string        `json:"dtype"`
	Checks    string        `json:"checks"`
	Batch     int           `json:"batch"`
	BlockSize int           `json:"block_size"`
	Shapes    []llama.Shape `json:"shapes"`
}

func (m *modelSource) add(s llama.Shape) {
	if !slices.Contains(m.Shapes, s) {
		m.Shapes = append(m.Shapes, s)
	}
}

// prefillShapes are the shapes of the steps that read a prompt of n tokens. keeps
// tells positions whose logits are reported; the last of a step is always wanted.
func prefillShapes(n, prefill int, keeps func(pos int) bool) []llama.Shape {
	var out []llama.Shape
	for at := 0; at < n; at += prefill {
		s := llama.Shape{Rows: min(prefill, n-at), Want: 1, Sequences: 1}
		for i := range s.Rows - 1 {
			if keeps(at + i) {
				s.Want++
			}
		}
		out = append(out, s)
	}
	return out
}

// compiledFile is a file of compile that was read.
type compiledFile struct {
	path   string
	file   *atb.Compiled
	source compileSource
}

// readCompiled reads a file of compile.
func readCompiled(path string) (*compiledFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &compiledFile{path: path}
	if c.file, err = atb.DecodeCompiled(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal([]byte(c.file.Source), &c.source); err != nil {
		return nil, fmt.Errorf("%s: want a file of atb compile, it does not say what it was compiled from: %w", path, err)
	}
	return c, nil
}

// options are those of a context that runs the file.
func (c *compiledFile) options() []atb.Option {
	if c == nil {
		return nil
	}
	return []atb.Option{atb.WithCompiled(c.file)}
}

// graph is the graph that was compiled.
func (c *compiledFile) graph() (*catalog.GraphFile, error) {
	if c.source.Graph == nil {
		return nil, fmt.Errorf("%s: want a compiled graph, got the steps of a model: use atb generate --compiled", c.path)
	}
	return catalog.ReadGraph(c.source.Graph)
}

// checkModel refuses a file that is not for the model, the flags and the prompt of
// a generate.
func (c *compiledFile) checkModel(g *generateCmd, j *job) error {
	m := c.source.Model
	if m == nil {
		return fmt.Errorf("%s: want the compiled steps of a model, got a graph: use atb run --compiled", c.path)
	}
	for _, f := range [...]struct {
		flag      string
		want, got any
	}{
		{"dtype", m.DType, g.Dtype}, {"checks", m.Checks, g.Checks}, {"batch", m.Batch, g.Batch}, {"block-size", m.BlockSize, g.BlockSize},
	} {
		if f.want != f.got {
			return fmt.Errorf("%s: it was compiled for --%s %v, got %v: run with that, or compile again with --%s %v", c.path, f.flag, f.want, f.got, f.flag, f.got)
		}
	}
	if m.Config != j.config {
		return fmt.Errorf("%s: it was compiled for a model of %+v, %s has %+v: compile it again with --model %s", c.path, m.Config, g.Model, j.config, g.Model)
	}
	for _, s := range g.shapes(j) {
		if !slices.Contains(m.Shapes, s) {
			return c.noStep(g, j, s)
		}
	}
	return nil
}

// noStep is the error of a step that the file does not have.
func (c *compiledFile) noStep(g *generateCmd, j *job, s llama.Shape) error {
	if s.Want > 1 && s.Rows > g.Batch {
		return fmt.Errorf("%s: it has no step of %d rows with %d logits: leave positions of the prompt out of --logits", c.path, s.Rows, s.Want)
	}
	return fmt.Errorf("%s: it has no step of %d rows: compile it again with --prompt-tokens %d --prefill %d", c.path, s.Rows, len(j.prompt), g.Prefill)
}
