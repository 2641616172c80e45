package compiled

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
	"goatb/tiling/sink/sinktest"
)

// planned captures a graph.
func planned(t testing.TB, nodes []capture.Node, s capture.Settings) *capture.Plan {
	t.Helper()
	p, err := capture.New(nodes, s)
	require.NoError(t, err)
	return p
}

// compile compiles a graph in a form.
func compile(t testing.TB, f sink.Form) *File {
	t.Helper()
	s := sinktest.Settings(f)
	file := New(s.Soc, f, sinktest.Machine(), true)
	file.Source = "a test"
	require.NoError(t, file.Add(planned(t, sinktest.Graph(), s)))
	return file
}

func encode(t testing.TB, f *File) []byte {
	t.Helper()
	b, err := f.Encode()
	require.NoError(t, err)
	return b
}

func decoded(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Decode(data)
	require.NoError(t, err)
	return f
}
