package sink

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernel"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts in testdata anew")

// transcript compares text with testdata/name.
func transcript(t *testing.T, name string, write func(*strings.Builder) error) {
	t.Helper()
	var b strings.Builder
	require.NoError(t, write(&b))
	path := filepath.Join("testdata", name)
	if *rewrite {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String(), name)
}

var (
	errAsk   = errors.New("no answer")
	platform = &kernel.Machine{Cores: 4, L1: 32 << 10, L2: 1 << 20, L3: 32 << 20}
)

// capable is a device that updates tasks.
func capable() (string, error) { return "", nil }

// building is a build in which everything that can be sunk is.
func building() *Build { return &Build{Option: Choice{true, "graph"}, Capable: capable} }

// reading is an operation whose tiling reads the value of its second input, made
// by operation `producer`.
func reading(id int64, producer int) Op {
	return Op{
		ID: id, Type: "Paged", Name: "layer/paged", CompileInfo: "{}",
		Inputs: []Input{{Declared: 0, Producer: Outside}, {Declared: 1, Producer: producer}},
		Registration: &Registration{
			Depends: 0b10, TileOn: kernel.OnHost | kernel.OnAICPU, Function: "paged/go",
		},
		Fusion: Fusion{Supported: true},
	}
}

// plain is an operation whose tiling reads no values.
func plain(id int64) Op {
	return Op{
		ID: id, Type: "Add", Name: "layer/add", CompileInfo: "{}", Inputs: []Input{{Producer: Outside}},
		Registration: &Registration{TileOn: kernel.OnHost}, Fusion: Fusion{Supported: true},
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// marked runs the gates.
func marked(t testing.TB, ops []Op) []Mark { return must(building().Judge(ops))(t) }

// sequenced is the sequence of one sunk operation on main stream 0, with
// attached stream 1, event 0 and n nops.
func sequenced(t testing.TB, o Op, n int) *Sequence {
	ops := []Op{o}
	marks := marked(t, ops)
	require.True(t, marks[0].Sunk, "%s", marks[0])
	return &Sequence{
		Op: &ops[0], Mark: &marks[0], Streams: []int{1}, Events: []int{0},
		Soc: &Profile{Name: "test", Sinks: true, Prefetch: n}, Platform: platform,
	}
}

const kernelArgs = "{i0}{i1}{o0}{ws0}{t}"

// own are the tasks that an operation has by itself: one before its kernel, the
// kernel, and one after it.
func own(id int64, kind TaskKind) []Task {
	return []Task{
		{Kind: KernelTask, Op: id, Args: "{o0}", BlockDim: 1},
		{Kind: kind, Op: id, Args: kernelArgs, BlockDim: 4, Key: 3},
		{Kind: KernelTask, Op: id, Args: "{o0}", BlockDim: 2},
	}
}

// only is a kernel and nothing else.
func only(id int64, kind TaskKind) []Task { return own(id, kind)[1:2] }
