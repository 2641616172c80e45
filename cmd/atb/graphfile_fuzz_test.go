package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/catalog"
)

// FuzzGraphFile reads, builds and sets up graphs from any bytes: each is refused
// with an error or has a kernel graph that can be shown.
func FuzzGraphFile(f *testing.F) {
	attention, err := os.ReadFile("testdata/attention.json")
	require.NoError(f, err)
	f.Add([]byte(mlp))
	f.Add(attention)
	for _, change := range [][2]string{
		{`"name": "act",`, `"name": "act", "stream": 7, "reshape": {"h": [0, -1]},`}, {"[2, 4]", "[2, 4611686018427387904]"},
		{`"in": ["x", "d"]`, `"in": ["x", ""]`}, {`"out": ["a"]`, `"out": ["x"]`}, {`"activationType": 1`, `"activationType": 1, "rsv": [0]`},
		{`"shape": [2, 4]`, `"shape": [2, 4], "values": [1,2,3,4,5,6,7,8]`},
	} {
		require.Contains(f, mlp, change[0])
		f.Add([]byte(strings.Replace(mlp, change[0], change[1], 1)))
	}
	for _, op := range catalog.Names() {
		f.Add([]byte(`{"inputs":[{"name":"x","dtype":"f16","shape":[4,32]},{"name":"n","dtype":"i32","shape":[2],"values":[2,2]}],"outputs":["y"],
			"nodes":[{"op":"` + op + `","param":{},"in":["x","n"],"out":["y"]}]}`))
	}
	dev, err := cpu.New(cpu.WithInline())
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, dev.Close()) })
	c, err := atb.NewContext(dev, atb.WithStreams(graphStreams))
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, c.Close()) })
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := catalog.ReadGraph(data)
		if err != nil {
			return
		}
		op, pack, err := buildGraph(dev, g)
		if err != nil {
			return
		}
		defer func() { require.NoError(t, op.Close()) }()
		if _, err := op.Setup(pack, c); err != nil {
			require.Contains(t, err.Error(), "setup")
			return
		}
		_, err = reportGraph(op, pack.In)
		require.NoError(t, err)
		var text strings.Builder
		require.NoError(t, op.Graph().WriteText(&text, op.Workspace()))
		require.NoError(t, op.Graph().WriteDot(&text))
	})
}
