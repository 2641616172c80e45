package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// badCase is a command line that is refused.
type badCase struct {
	name string
	args []string
	says string
}

// TestWrongInput runs command lines that must end with status 2, nothing on
// standard output and one line on standard error that says what is wrong.
func TestWrongInput(t *testing.T) {
	cleanEnv(t)
	for group, list := range map[string][]badCase{
		"usage": badUsage(t), "plan": badPlans(t), "graph": badGraphUses(t), "graph file": badGraphFiles(t), "run": badRuns(t),
		"variables": badVariables(t), "generate": badGenerates(t), "compile": badCompiles(t),
	} {
		for _, c := range list {
			t.Run(group+"/"+c.name, func(t *testing.T) { refused(t, c) })
		}
	}
}

// refused runs a command line that must be refused.
func refused(t *testing.T, c badCase) {
	t.Helper()
	r := atbRun(t, c.args...)
	assert.Equal(t, exitUsage, r.code, r.stderr)
	assert.Empty(t, r.stdout)
	assert.True(t, strings.HasPrefix(r.stderr, "atb: "), r.stderr)
	assert.Contains(t, r.stderr, c.says)
	assert.NotContains(t, r.stderr, "internal error")
	assert.NotContains(t, r.stderr, "goroutine")
}

// mlpFile writes the graph mlp.
func mlpFile(t *testing.T) string { return write(t, "mlp.json", []byte(mlp)) }

func planFile(t *testing.T) string { return write(t, "plan.csv", []byte(buffers)) }

func show(file string, more ...string) []string { return append([]string{"graph", file}, more...) }

// badUsage are no commands at all.
func badUsage(t *testing.T) []badCase {
	t.Helper()
	return []badCase{
		{"unknown command", []string{"fly"}, "unexpected argument fly"},
		{"unknown flag", []string{"env", "--fast"}, "unknown flag --fast"},
		{"no number", []string{"generate", "--steps", "many"}, "--steps"},
	}
}

// badPlans are wrong uses of plan and files that are no buffers.
func badPlans(t *testing.T) []badCase {
	t.Helper()
	plan := planFile(t)
	csv := func(text string) []string { return []string{"plan", write(t, "bad.csv", []byte(text))} }
	return []badCase{
		{"plan without a file", []string{"plan"}, "<file>"},
		{"no such plan", []string{"plan", "nowhere.csv"}, "nowhere.csv"},
		{"a folder as plan", []string{"plan", t.TempDir()}, "directory"},
		{"an empty plan", csv(""), "want a header"},
		{"a plan without sizes", csv("id,lower,upper\na,0,1\n"), "size"},
		{"a plan with a word", csv("id,lower,upper,size\na,0,x,4\n"), "line 2"},
		{"a plan with a short row", csv("id,lower,upper,size\na,0,1,4\nb,0\n"), "line 3"},
		{"a plan with a negative size", csv("id,lower,upper,size\na,0,1,-4\n"), "line 2"},
		{"a plan that ends before it begins", csv("id,lower,upper,size\na,3,1,4\n"), "line 2"},
		{"sizes above all", csv("id,lower,upper,size\na,0,1,9223372036854775807\nb,0,1,9223372036854775807\n"), "bad.csv"},
		{"a size with 30 digits", csv("id,lower,upper,size\na,0,1,100000000000000000000000000000\n"), "line 2"},
		{"an open quote", csv("id,lower,upper,size\n\"a,0,1,4\n"), "bad.csv"},
		{"solver above", []string{"plan", plan, "--solver", "5"}, "want 0 to 4, got 5"},
		{"solver below", []string{"plan", plan, "--solver=-1"}, "want 0 to 4, got -1"},
		{"negative capacity", []string{"plan", plan, "--capacity=-1"}, "--capacity"},
		{"negative nodes", []string{"plan", plan, "--nodes=-1"}, "--nodes"},
		{"negative deadline", []string{"plan", plan, "--deadline=-1s"}, "--deadline"},
		{"deadline without a unit", []string{"plan", plan, "--deadline=5"}, "--deadline"},
		{"negative threads", []string{"plan", plan, "--threads=-1"}, "--threads"},
		{"no threads", []string{"plan", plan, "--threads", "0"}, "--threads: want 1 to 1024, got 0"},
		{"no alignment", []string{"plan", plan, "--align", "0"}, "--align"},
		{"an odd alignment", []string{"plan", plan, "--align", "3"}, "power of two"},
		{"a drawing of two plans", []string{"plan", plan, plan, "--svg", "x.svg"}, "--svg draws one file"},
		{"too many threads", []string{"plan", plan, "--threads", "1000000000"}, "--threads"},
		{"a table of two plans", []string{"plan", plan, plan, "--csv", "x.csv"}, "--csv writes the plan of one file"},
		{"a table nowhere", []string{"plan", plan, "--csv", "/nowhere/x.csv"}, "/nowhere/x.csv"},
		{"a drawing nowhere", []string{"plan", plan, "--svg", "/nowhere/x.svg"}, "/nowhere/x.svg"},
	}
}

// badGraphUses are wrong uses of graph.
func badGraphUses(t *testing.T) []badCase {
	t.Helper()
	graph := mlpFile(t)
	return []badCase{
		{"graph without a source", []string{"graph"}, "want either a graph file or --model"},
		{"graph with two sources", []string{"graph", graph, "--model", "m"}, "want either a graph file or --model"},
		{"no such graph", show("nowhere.json"), "nowhere.json"},
		{"task lists as a drawing", show(graph, "--tasks", "--format", "svg"), "--tasks: want --format text or json"},
		{"unknown format", show(graph, "--format", "png"), "--format"},
		{"two formats", show(graph, "--json", "--format", "svg"), "exclude each other"},
		{"unknown checks", show(graph, "--checks", "310p"), "--checks"},
		{"solver of a graph", show(graph, "--solver", "9"), "want 0 to 4, got 9"},
		{"f32 for the board", show(graph, "--checks", "910b"), "up (LinearOperation): profile 910b takes f32"},
		{"no model there", []string{"graph", "--model", t.TempDir()}, "want a *.bin model"},
	}
}

// badGraphFiles are files that are no graphs, or graphs that cannot run.
func badGraphFiles(t *testing.T) []badCase {
	t.Helper()
	nodes := func(inputs, nodes string) string {
		return write(t, "g.json", []byte(`{"name":"g","inputs":[`+inputs+`],"outputs":["y"],"nodes":[`+nodes+`]}`))
	}
	const x = `{"name":"x","dtype":"f32","shape":[2,2]}`
	add := func(a, b, y string) string {
		return `{"name":"n_` + y + `","op":"ElewiseOperation","param":{"elewiseType":8},"in":["` + a + `","` + b + `"],"out":["` + y + `"]}`
	}
	changed := func(old, new string) string {
		require.Contains(t, mlp, old)
		return write(t, "g.json", []byte(strings.Replace(mlp, old, new, 1)))
	}
	return []badCase{
		{"empty graph file", show(write(t, "g.json", nil)), "graph file"},
		{"cut graph file", show(write(t, "g.json", []byte(mlp[:len(mlp)/2]))), "graph file"},
		{"two graphs in a file", show(write(t, "g.json", []byte(mlp+mlp))), "more than one value"},
		{"an array for a graph", show(write(t, "g.json", []byte(`[]`))), "graph file"},
		{"unknown key", show(write(t, "g.json", []byte(`{"name":"g","input":[]}`))), `unknown key "input": want one of "inputs", "`},
		{"unknown key of a node", show(changed(`"name": "act"`, `"label": "act"`)), `unknown key "nodes[3].label": want one of "`},
		{"unknown operation", show(changed("ActivationOperation", "NoOperation")), `unknown operation "NoOperation": want one of "`},
		{"an operation of another case", show(changed("ActivationOperation", "activation")), `create: act: unknown operation "activation": want one of "ActivationOperation", "`},
		{"a key twice", show(changed(`"name": "act"`, `"name": "act", "op": "act"`)), `the key "nodes[3].op" is there twice`},
		{"unknown key of an input", show(changed(`"dtype": "f32"`, `"type": "f32"`)), `unknown key "inputs[0].type": want one of "dtype", "`},
		{"a parameter that there is not", show(changed(`"hasBias": false`, `"bias": false`)), `LinearOperation: create: down: parameters: unknown key "bias": want one of "hasBias", "`},
		{"a parameter left out", show(changed("activationType", "kind")), "activationType"},
		{"bad parameter", show(changed(`"activationType": 1`, `"activationType": 99`)), "act"},
		{"a word for a flag", show(changed(`"hasBias": false`, `"hasBias": "no"`)), "hasBias"},
		{"an input of an unknown type", show(changed(`"dtype": "f32"`, `"dtype": "f33"`)), "f33"},
		{"an input without shape", show(changed(`"dtype": "f32", "shape": [2, 4]`, `"dtype": "f32"`)), "x: want rank 1 to 8, got 0"},
		{"an input by name alone", show(changed(`{"name": "x", "dtype": "f32", "shape": [2, 4]}`, `"x"`)), `input "x": want dtype and shape`},
		{"a negative dimension", show(changed("[2, 4]", "[2, -4]")), "x"},
		{"nine dimensions", show(changed("[2, 4]", "[1,1,1,1,1,1,1,1,8]")), "x"},
		{"more than all memory", show(changed("[2, 4]", "[4611686018427387904, 4]")), "x"},
		{"shapes that do not fit", show(changed("[4, 6]", "[5, 6]")), "up"},
		{"a bad name", show(changed(`"name": "mlp"`, `"name": "a b"`)), "a b"},
		{"a stream above", show(changed(`"name": "act",`, `"name": "act", "stream": 8,`)), "stream"},
		{"a negative stream", show(changed(`"name": "act",`, `"name": "act", "stream": -1,`)), "stream"},
		{"a reshape that does not fit", show(changed(`"name": "act",`, `"name": "act", "reshape": {"h": [5, 5]},`)), "act"},
		{"a reshape of another node's input", show(changed(`"name": "act",`, `"name": "act", "reshape": {"q": [5, 5]},`)), `act: reshape: want inputs of the node ("h"), got "q"`},
		{"a reshape to nothing", show(changed(`"name": "act",`, `"name": "act", "reshape": {"h": []},`)), "act"},
		{"an empty graph", show(write(t, "g.json", []byte(`{}`))), "GraphOperation: create: want 1 to 1024 nodes, got 0"},
		{"a graph without nodes", show(nodes(x, "")), "g: create: want 1 to 1024 nodes, got 0"},
		{"a cycle", show(nodes(x, add("x", "b", "a")+","+add("x", "a", "b")+","+add("a", "b", "y"))), "cycle: n_a -> n_b -> n_a"},
		{"a tensor that nobody writes", show(nodes(x, add("x", "ghost", "y"))), "ghost"},
		{"an output that nobody writes", show(nodes(x, add("x", "x", "z"))), "y"},
		{"an input twice", show(nodes(x+","+x, add("x", "x", "y"))), "x"},
		{"too few inputs of a node", show(nodes(x, `{"op":"ElewiseOperation","param":{"elewiseType":8},"in":["x"],"out":["y"]}`)), "0_ElewiseOperation"},
		{"too many outputs of a node", show(nodes(x, `{"op":"ElewiseOperation","param":{"elewiseType":8},"in":["x","x"],"out":["y","z"]}`)), "0_ElewiseOperation"},
		{"values that do not fit", show(changed(`"shape": [2, 4]}`, `"shape": [2, 4], "values": [1, 2]}`)), "want 8 values"},
	}
}

// badRuns are wrong uses of run.
func badRuns(t *testing.T) []badCase {
	t.Helper()
	graph, plan := mlpFile(t), planFile(t)
	in, _ := mlpInputs(t)
	return []badCase{
		{"run without inputs", []string{"run", graph}, "--inputs"},
		{"run without a graph there", []string{"run", "nowhere.json", "--inputs", "i", "--outputs", "o"}, "nowhere.json"},
		{"run with a parameter that there is not", []string{"run", write(t, "g.json", []byte(strings.Replace(mlp, "hasBias", "hasbias", 1))), "--inputs", in, "--outputs", "o"}, `unknown key "hasbias": want one of "hasBias", "`},
		{"run without inputs there", []string{"run", graph, "--inputs", "nowhere.safetensors", "--outputs", "o"}, "nowhere.safetensors"},
		{"inputs that are no tensors", []string{"run", graph, "--inputs", plan, "--outputs", "o"}, "plan.csv"},
		{"no repetition", []string{"run", graph, "--inputs", plan, "--outputs", "o", "--repeat", "0"}, "--repeat"},
	}
}

// badVariables are variables that there are not and values that they cannot have.
func badVariables(t *testing.T) []badCase {
	t.Helper()
	graph := mlpFile(t)
	return []badCase{
		{"a variable that there is not", []string{"env", "--set", "ATB_FAST=1"}, "ATB_FAST"},
		{"a variable without a value", []string{"env", "--set", "ATB_RUNNER_POOL_SIZE"}, "want NAME=VALUE"},
		{"a variable without a name", []string{"generate", "--set", "=1"}, "want NAME=VALUE"},
		{"a bad value for a context", []string{"generate", "--set", "ATB_RUNNER_POOL_SIZE=-1"}, `ATB_RUNNER_POOL_SIZE="-1"`},
		{"an unknown variable for a context", show(graph, "--set", "ATB_FAST=1"), "ATB_FAST"},
		{"policies that contradict", []string{"generate", "--set", "ATB_LAUNCH_KERNEL_WITH_TILING=1,ATB_USE_TILING_COPY_STREAM=1"}, "contradict"},
	}
}

// badGenerates are wrong uses of generate.
func badGenerates(t *testing.T) []badCase {
	t.Helper()
	return []badCase{
		{"no steps", []string{"generate", "--steps", "0"}, "--steps: want at least 1, got 0"},
		{"no prefill", []string{"generate", "--prefill", "0"}, "--prefill: want at least 1, got 0"},
		{"no batch", []string{"generate", "--batch", "0"}, "--batch: want at least 1, got 0"},
		{"no block size", []string{"generate", "--block-size=-1"}, "--block-size: want at least 1, got -1"},
		{"a block size above all", []string{"generate", "--block-size", "9223372036854775807"}, "want a cache of at most"},
		{"a batch above all", []string{"generate", "--batch", "9223372036854775807"}, "want a cache of at most"},
		{"too many steps", []string{"generate", "--steps", "513"}, "leaves room for 512 steps in the model's 512 positions, got 513"},
		{"steps above all", []string{"generate", "--steps", "9223372036854775807"}, "leaves room for 512 steps"},
		{"too many steps behind a prompt", []string{"generate", "--prompt-ids", "1,2,3", "--steps", "511"}, "leaves room for 510 steps"},
		{"logits of nowhere", []string{"generate", "--steps", "4", "--logits", "1,4"}, "--logits: want positions of 0 to 3, got 4"},
		{"no policy", []string{"generate", "--policy="}, "--policy: want a value, got none"},
		{"unknown policy", []string{"generate", "--policy", "fast"}, `"fast"`},
		{"unknown policy among others", []string{"generate", "--policy", "overall,fast"}, `"fast"`},
		{"unknown device", []string{"generate", "--device", "abacus"}, `want cpu or sim, got "abacus"`},
		{"unknown profile", []string{"generate", "--device", "sim", "--profile", "abacus"}, "want one of ascend910b"},
		{"negative workers", []string{"generate", "--workers=-1"}, "--workers"},
		{"too many workers", []string{"generate", "--workers", "1000000"}, "--workers: want 1 to "},
		{"unknown type", []string{"generate", "--dtype", "f64"}, "--dtype"},
		{"unknown cache setting", []string{"generate", "--caches", "maybe"}, "--caches"},
		{"a negative temperature", []string{"generate", "--temperature=-1"}, "temperature"},
		{"no temperature at all", []string{"generate", "--temperature", "NaN"}, "temperature"},
		{"a top-p above", []string{"generate", "--top-p", "1.5"}, "top-p"},
		{"two prompts", []string{"generate", "--model", "m", "--prompt", "a", "--prompt-ids", "1"}, "exclude each other"},
		{"prompt text without a tokenizer", []string{"generate", "--prompt", "hi"}, "--prompt wants --model"},
		{"a token above the vocabulary", []string{"generate", "--prompt-ids", "1,99999"}, "--prompt-ids: want ids of 0 to 2047, got 99999"},
		{"a negative token", []string{"generate", "--prompt-ids=-5"}, "got -5"},
		{"no model for generate", []string{"generate", "--model", t.TempDir()}, "want a *.bin model"},
		{"f32 for the board's model", []string{"generate", "--checks", "910b"}, "ERROR_INVALID_TENSOR_INI_MATCH"},
		{"a timeline nowhere", []string{"generate", "--trace", "/nowhere/t.json"}, "/nowhere/t.json"},
	}
}
