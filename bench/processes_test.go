package bench_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// processTime is how long each process of BenchmarkProcesses decodes.
const processTime = "2s"

// BenchmarkProcesses decodes in one process, then in two at once, each with a
// device of its own: what idle goroutines of the one take from the other.
// least/alone is the rate of the slower one over that of a process alone.
func BenchmarkProcesses(b *testing.B) {
	for _, m := range models {
		b.Run("model="+m.name, func(b *testing.B) {
			var alone, least float64
			for b.Loop() {
				alone = max(alone, decodeElsewhere(b, m.name, 1)[0])
				least = max(least, slices.Min(decodeElsewhere(b, m.name, 2)))
			}
			b.ReportMetric(alone, "steps/s-alone")
			b.ReportMetric(least, "steps/s-of-two")
			b.ReportMetric(least/alone, "least/alone")
		})
	}
}

var perOp = regexp.MustCompile(`([0-9.]+) ns/op`)

// decodeElsewhere runs BenchmarkDecode in n processes at once and returns their
// steps per second.
func decodeElsewhere(b *testing.B, model string, n int) []float64 {
	b.Helper()
	name := fmt.Sprintf("^BenchmarkDecode$/^policy=kernel-follow$/^model=%s$/^batch=1$", model)
	outs, processes := make([]bytes.Buffer, n), make([]*exec.Cmd, n)
	for i := range processes {
		processes[i] = exec.Command(os.Args[0], "-test.run=^$", "-test.bench="+name, "-test.benchtime="+processTime)
		processes[i].Stdout, processes[i].Stderr = &outs[i], &outs[i]
		require.NoError(b, processes[i].Start())
	}
	rates := make([]float64, n)
	for i, p := range processes {
		require.NoError(b, p.Wait(), outs[i].String())
		m := perOp.FindSubmatch(outs[i].Bytes())
		require.NotNil(b, m, outs[i].String())
		ns, err := strconv.ParseFloat(string(m[1]), 64)
		require.NoError(b, err)
		rates[i] = 1e9 / ns
	}
	return rates
}
