package decoder

import (
	"fmt"
	"slices"

	"goatb/atb"
)

// maxInputs is the number of inputs of a graph.
const maxInputs = 256

// piece is a part of a step that is one operation: layers from to to-1, each a
// graph of its own, with the embedding before the first and the head behind the
// last layer of the model.
type piece struct {
	*Shape
	from, to       int
	tokens, prompt int
}

// pieces cuts a step into as few operations as the number of their inputs allows.
func (s *Shape) pieces(tokens, prompt int) []piece {
	each := len(s.layerInputs(s.Layers-1, tokens)) - 1 - len(shared)
	most := (maxInputs - 1 - len(shared) - len(embedInputs) - len(headInputs)) / each
	var list []piece
	for from := 0; from < s.Layers; from += most {
		list = append(list, piece{s, from, min(from+most, s.Layers), tokens, prompt})
	}
	return list
}

func (p *piece) first() bool { return p.from == 0 }
func (p *piece) last() bool  { return p.to == p.Layers }

// inputs are the names of the operation's inputs: what comes from the piece
// before, what layers share, the ends, and the weights and caches of each layer.
func (p *piece) inputs() []string {
	var names []string
	if !p.first() {
		names = append(names, "x")
	}
	for _, n := range shared {
		if !p.first() || n != "cos" && n != "sin" {
			names = append(names, n)
		}
	}
	if p.first() {
		names = append(names, embedInputs...)
	}
	if p.last() {
		for _, n := range headInputs {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for l := p.from; l < p.to; l++ {
		for _, name := range p.layerInputs(l, p.tokens)[1+len(shared):] {
			names = append(names, numbered(name, l))
		}
	}
	return names
}

// outputs are the names of the operation's outputs.
func (p *piece) outputs() []string {
	switch {
	case p.last():
		return []string{"logits"}
	case p.first():
		return []string{"y", "cos", "sin"}
	}
	return []string{"y"}
}

// graph makes the operation.
func (p *piece) graph() (*atb.Op, error) {
	b := atb.BuildGraph("step", p.inputs(), p.outputs())
	x := "x"
	if p.first() {
		addEmbed(b, x)
	}
	for l := p.from; l < p.to; l++ {
		op, err := p.layerGraph(l, p.tokens, p.prompt)
		if err != nil {
			return nil, err
		}
		in, y := append([]string{x}, shared...), numbered("x", l+1)
		if l+1 == p.to && !p.last() {
			y = "y"
		}
		for _, name := range p.layerInputs(l, p.tokens)[1+len(shared):] {
			in = append(in, numbered(name, l))
		}
		b.Add(op, in, []string{y})
		x = y
	}
	if p.last() {
		p.addHead(b, x)
	}
	return b.Build()
}

// numbered is the name of a layer's own input in an operation of several layers.
func numbered(name string, layer int) string { return fmt.Sprintf("%s.%d", name, layer) }
