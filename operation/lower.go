package operation

import (
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// Lower checks a spec as Setup does and returns its kernel graph, without a
// context: for tests, dumps and tools. values holds the host values by input.
func Lower(s Spec, p *Profile, env *kernelgraph.Env, in, out []tensor.Desc, values [][]int64) (*kernelgraph.Graph, error) {
	if err := status.Given("lower", "env", env); err != nil {
		return nil, err
	}
	c, err := checkerOf("lower", s, p)
	if err != nil {
		return nil, err
	}
	q, err := c.setup(s, in, out, values)
	if err != nil {
		return nil, err
	}
	return c.lower(s, env, q)
}

// newBuilder makes a builder whose operands have the names of their ports.
func newBuilder(env *kernelgraph.Env, sig *Signature, q *Query) *kernelgraph.Builder {
	b := kernelgraph.New(env, sig.Name, q.In, q.Out)
	b.NameOperands(portNames(sig.In), portNames(sig.Out))
	return b
}

func portNames(ports []Port) []string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = p.Name
	}
	return names
}

func (c *checker) lower(s Spec, env *kernelgraph.Env, q *Query) (*kernelgraph.Graph, error) {
	b := newBuilder(env, c.sig, q)
	err := s.Lower(b, q)
	if err == nil {
		var g *kernelgraph.Graph
		if g, err = b.Build(); err == nil {
			return g, nil
		}
	}
	return nil, status.Place(err, status.ErrInvalidParam, c.sig.Name, StageSetup.String(), "")
}
