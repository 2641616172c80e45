package llama_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/atb"
	"goatb/model/llama"
	"goatb/tensor"
)

// stepper decodes at a fixed length: it rewinds what it computes.
func stepper(t testing.TB, s *llama.Session) func() {
	rows, want := []llama.Row{{Token: 1}}, []int32{0}
	ctx := t.Context()
	return func() {
		if _, err := s.Forward(ctx, rows, want); err != nil {
			panic(err)
		}
		if err := s.Rewind(0, 1); err != nil {
			panic(err)
		}
	}
}

// A replayed step allocates nothing, whatever the form.
func TestReplayedStepAllocatesNothing(t *testing.T) {
	w := small(t)
	for _, form := range []string{"update", "ffts", "superkernel", "v2"} {
		s := open(t, w, tensor.Float32, llama.Options{Sequences: 1, BlockSize: 4}, newDevice(t), atb.WithPolicy("device-sink"), atb.WithSinkForm(form))
		forward(t, s, llama.Row{Token: 1})
		step := stepper(t, s)
		step()
		require.Zero(t, testing.AllocsPerRun(50, step), form)
	}
}
