package operation

import (
	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// Lower checks a spec as Setup does and returns its kernel graph, without a
// context: for tests, dumps and tools. values holds the host values by input.
func Lower(s Spec, p *Profile, env *kernelgraph.Env, in, out []tensor.Desc, values [][]int64) (*kernelgraph.Graph, error) {
	sig := s.Signature()
	c, err := newChecker(&sig, p)
	if err != nil {
		return nil, err
	}
	q, err := c.setup(s, in, out, values)
	if err != nil {
		return nil, err
	}
	return c.lower(s, env, q)
}

func (c *checker) lower(s Spec, env *kernelgraph.Env, q *Query) (*kernelgraph.Graph, error) {
	b := kernelgraph.New(env, c.sig.Name, q.In, q.Out)
	err := s.Lower(b, q)
	if err == nil {
		var g *kernelgraph.Graph
		if g, err = b.Build(); err == nil {
			return g, nil
		}
	}
	return nil, status.Place(err, status.ErrInvalidParam, c.sig.Name, StageSetup.String(), "")
}
