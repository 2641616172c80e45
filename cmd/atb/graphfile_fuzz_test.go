package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/device/cpu"
	"goatb/operation/catalog"
)

// oddValues are values that a graph file does not want somewhere.
var oddValues = []string{`null`, `-1`, `0`, `1`, `3`, `2147483648`, `9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `1e308`, `1.5`,
	`""`, `"x"`, `"h"`, `"\u0000"`, `"i32"`, `"LinearOperation"`, `[]`, `{}`, `[[]]`, `true`, `[0]`, `[-1]`, `[4611686018427387904,4]`, `[0,0,0,0,0,0,0,0,0]`}

// mutated replaces, removes or doubles one value somewhere in a JSON value.
func mutated(r *rand.Rand, v any) any {
	switch x := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(x))
		if len(keys) == 0 || r.IntN(8) == 0 {
			break
		}
		key := keys[r.IntN(len(keys))]
		if r.IntN(12) == 0 {
			delete(x, key)
			return x
		}
		x[key] = mutated(r, x[key])
		return x
	case []any:
		if len(x) == 0 || r.IntN(8) == 0 {
			break
		}
		switch i := r.IntN(len(x)); r.IntN(12) {
		case 0:
			return slices.Delete(x, i, i+1)
		case 1:
			return append(x, x[i])
		default:
			x[i] = mutated(r, x[i])
		}
		return x
	}
	return json.RawMessage(oddValues[r.IntN(len(oddValues))])
}

// mutatedText changes a JSON text in one to three places; what is no JSON, and
// seed 0, stay as they are.
func mutatedText(data []byte, seed uint64) []byte {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if seed == 0 || d.Decode(&v) != nil {
		return data
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1 + r.IntN(3) {
		v = mutated(r, v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return data
	}
	return text
}

// FuzzGraphFile reads, builds and sets up graphs from any bytes and from graphs
// that were changed here and there: each is refused with an error or has a
// kernel graph that can be shown.
func FuzzGraphFile(f *testing.F) {
	attention, err := os.ReadFile("testdata/attention.json")
	require.NoError(f, err)
	for seed := range uint64(400) {
		f.Add([]byte(mlp), seed)
		f.Add(attention, seed)
	}
	for _, change := range [][2]string{
		{`"name": "act",`, `"name": "act", "stream": 7, "reshape": {"h": [0, -1]},`}, {"[2, 4]", "[2, 4611686018427387904]"},
		{`"in": ["x", "d"]`, `"in": ["x", ""]`}, {`"out": ["a"]`, `"out": ["x"]`}, {`"activationType": 1`, `"activationType": 1, "rsv": [0]`},
		{`"shape": [2, 4]`, `"shape": [2, 4], "values": [1,2,3,4,5,6,7,8]`},
	} {
		require.Contains(f, mlp, change[0])
		f.Add([]byte(strings.Replace(mlp, change[0], change[1], 1)), uint64(0))
	}
	for _, op := range catalog.Names() {
		f.Add([]byte(`{"inputs":[{"name":"x","dtype":"f16","shape":[4,32]},{"name":"n","dtype":"i32","shape":[2],"values":[2,2]}],"outputs":["y"],
			"nodes":[{"op":"`+op+`","param":{},"in":["x","n"],"out":["y"]}]}`), uint64(0))
	}
	dev, err := cpu.New(cpu.WithInline())
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, dev.Close()) })
	c, err := atb.NewContext(dev, atb.WithStreams(graphStreams))
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, c.Close()) })
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		g, err := catalog.ReadGraph(mutatedText(data, seed))
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
