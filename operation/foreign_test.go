package operation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	atbctx "goatb/context"
	"goatb/device"
	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

func TestZeroOpAsANode(t *testing.T) {
	zero := &operation.Op{}
	_, err := operation.BuildGraph("G", []string{"x"}, []string{"y"}).Add(zero, []string{"x"}, []string{"y"}).Build()
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	require.ErrorContains(t, err, "zero Op")
	_, err = operation.NewGraph(operation.GraphParam{Inputs: 1, Outputs: 1, Nodes: []operation.Node{{Op: zero, In: []int{0}, Out: []int{1}}}})
	require.ErrorIs(t, err, status.ErrInvalidGraph)
	require.ErrorContains(t, err, "zero Op")
}

// bomb is a plugin one of whose methods panics.
type bomb struct {
	*streamed
	at string
}

func (p *bomb) blow(method string) {
	if p.at == method {
		panic("boom")
	}
}

func (p *bomb) OnStream(graph int) int { p.blow("OnStream"); return p.streamed.OnStream(graph) }

func (p *bomb) InferShape(in []tensor.Desc) ([]tensor.Desc, error) {
	p.blow("InferShape")
	return p.streamed.InferShape(in)
}

func (p *bomb) Setup(pack operation.VariantPack, c *atbctx.Context) (int64, error) {
	p.blow("Setup")
	return p.streamed.Setup(pack, c)
}

func (p *bomb) Execute(pack operation.VariantPack, ws device.Buffer, c *atbctx.Context) error {
	p.blow("Execute")
	return p.streamed.Execute(pack, ws, c)
}

func (p *bomb) Close() error { p.blow("Close"); return p.streamed.Close() }

func TestPluginPanicsAreErrors(t *testing.T) {
	for _, tt := range []struct {
		method string
		code   status.Code
	}{
		{"InferShape", status.ErrGraphInferShapeFail}, {"OnStream", status.ErrInvalidParam},
		{"Setup", status.ErrInvalidParam}, {"Execute", status.ErrRuntimeFail},
	} {
		t.Run(tt.method, func(t *testing.T) {
			b := newBed(t)
			p := &bomb{&streamed{plugin{inner: b.op(muls(5)), inputs: 1, stream: -1}}, tt.method}
			g := b.graph(around(t, p))
			x := b.f32([]float32{1})
			pack := operation.VariantPack{In: []device.Tensor{x}, Out: []device.Tensor{b.empty(x.Desc)}}
			size, err := g.Setup(pack, b.c)
			if tt.method == "Execute" {
				require.NoError(t, err)
				ws, werr := b.c.Workspace(size)
				require.NoError(t, werr)
				err = g.Execute(pack, ws, b.c)
			}
			require.ErrorIs(t, err, tt.code)
			assert.ErrorContains(t, err, "Around: ")
			assert.ErrorContains(t, err, "mine")
			assert.ErrorContains(t, err, tt.method+" of PluginOperation panicked: boom")
			if tt.method == "InferShape" {
				_, err := g.InferShape([]tensor.Desc{x.Desc})
				require.ErrorIs(t, err, tt.code)
			}
			p.at = ""
			assert.Equal(t, []float32{20}, b.run(g, x), "nothing stays locked")
		})
	}
	t.Run("Close", func(t *testing.T) {
		b := newBed(t)
		p := &bomb{&streamed{plugin{inner: b.op(muls(5)), inputs: 1, stream: -1}}, "Close"}
		g, err := operation.NewGraph(around(t, p))
		require.NoError(t, err)
		assert.Equal(t, []float32{20}, b.run(g, b.f32([]float32{1})))
		err = g.Close()
		require.ErrorIs(t, err, status.ErrRuntimeFail)
		require.ErrorContains(t, err, "Close of PluginOperation panicked: boom")
		require.NoError(t, g.Close())
	})
}
