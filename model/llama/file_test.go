package llama

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// modelFile writes a model in the format of llama2.c: a header and n floats
// that count up.
func modelFile(n int, header ...int32) []byte {
	var b []byte
	for _, h := range header {
		b = binary.LittleEndian.AppendUint32(b, uint32(h))
	}
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
	}
	return b
}

// Sizes of a tiny model: dim 4, hidden 3, 2 layers, 2 heads on 1, vocab 5,
// max_seq 6.
const tinyFloats = 5*4 + 2*(4+16+8+8+16+4+12+12+12) + 4 + 6*2

// parseModel reads a model from memory.
func parseModel(b []byte) (*Weights, error) {
	f, err := newFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	return readAll(f)
}

func tinyHeader(vocab int32) []int32 { return []int32{4, 3, 2, 2, 1, vocab, 6} }

func TestParseModelCutsInFileOrder(t *testing.T) {
	w, err := parseModel(modelFile(tinyFloats, tinyHeader(5)...))
	require.NoError(t, err)
	require.True(t, w.Config.SharedClassifier)
	next := float32(0)
	follows := func(name string, f []float32, n int) {
		t.Helper()
		require.Len(t, f, n, name)
		for _, v := range f {
			require.Equal(t, next, v, name)
			next++
		}
	}
	follows("embedding", w.Embedding, 20)
	for _, x := range []struct {
		name string
		n    int
		of   func(*LayerWeights) []float32
	}{
		{"attention norm", 4, func(l *LayerWeights) []float32 { return l.AttnNorm }}, {"wq", 16, func(l *LayerWeights) []float32 { return l.WQ }},
		{"wk", 8, func(l *LayerWeights) []float32 { return l.WK }}, {"wv", 8, func(l *LayerWeights) []float32 { return l.WV }},
		{"wo", 16, func(l *LayerWeights) []float32 { return l.WO }}, {"ffn norm", 4, func(l *LayerWeights) []float32 { return l.FFNNorm }},
		{"w1", 12, func(l *LayerWeights) []float32 { return l.W1 }}, {"w2", 12, func(l *LayerWeights) []float32 { return l.W2 }},
		{"w3", 12, func(l *LayerWeights) []float32 { return l.W3 }},
	} {
		for l := range w.Layers {
			follows(x.name, x.of(&w.Layers[l]), x.n)
		}
	}
	follows("final norm", w.FinalNorm, 4)
	assert.Equal(t, w.Embedding, w.Classifier)

	own, err := parseModel(modelFile(tinyFloats+20, tinyHeader(-5)...))
	require.NoError(t, err)
	require.False(t, own.Config.SharedClassifier)
	next += 12 // frequencies
	follows("classifier", own.Classifier, 20)
	assert.Equal(t, int64(4*(tinyFloats+20-12)), own.Bytes())
}

func TestParseModelRefuses(t *testing.T) {
	good := modelFile(tinyFloats, tinyHeader(5)...)
	for n := range len(good) {
		_, err := parseModel(good[:n])
		require.Error(t, err, "cut to %d bytes", n)
	}
	_, err := parseModel(append(bytes.Clone(good), 0))
	require.ErrorContains(t, err, "wants")
	for name, c := range map[string]struct {
		header []int32
		text   string
	}{
		"all zero":           {[]int32{0, 0, 0, 0, 0, 0, 0}, "dim: want 1"},
		"a negative size":    {[]int32{4, -3, 2, 2, 1, 5, 6}, "hidden"},
		"no heads":           {[]int32{4, 3, 2, 0, 1, 5, 6}, "heads"},
		"uneven heads":       {[]int32{4, 3, 2, 3, 1, 5, 6}, "does not make 3 heads"},
		"an odd head dim":    {[]int32{6, 3, 2, 2, 1, 5, 6}, "even width"},
		"uneven kv heads":    {[]int32{12, 3, 2, 6, 4, 5, 6}, "kv_heads evenly"},
		"the smallest vocab": {[]int32{4, 3, 2, 2, 1, math.MinInt32, 6}, "vocab"},
		"a size above all":   {[]int32{4, 3, 1 << 25, 2, 1, 5, 6}, "layers: want 1 to"},
		"many layers":        {[]int32{2, 1, 1 << 24, 1, 1, 5, 6}, "wants"},
		"more than memory":   {[]int32{1 << 24, 1 << 24, 1 << 24, 1, 1, 1 << 24, 6}, "too many for the address space"},
		"another max_seq":    {[]int32{4, 3, 2, 2, 1, 5, 7}, "wants"},
		"another vocab":      {[]int32{4, 3, 2, 2, 1, 4, 6}, "wants"},
		"its own classifier": {[]int32{4, 3, 2, 2, 1, -5, 6}, "wants"},
	} {
		t.Run(name, func(t *testing.T) {
			b := append(modelFile(0, c.header...), good[4*headerInts:]...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := parseModel(b)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, c.text)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "refused before memory is taken")
		})
	}
}

// A file gives the rows of a model that is read whole, until it is closed.
func TestFileRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.bin")
	require.NoError(t, os.WriteFile(path, modelFile(tinyFloats+20, tinyHeader(-5)...), 0o644))
	w, err := LoadFile(path)
	require.NoError(t, err)
	f, err := OpenFile(path)
	require.NoError(t, err)
	require.Equal(t, w.Config, f.Model())
	require.NoError(t, w.Config.each(func(x Tensor, layer int) error {
		rows, cols := w.Config.Size(x)
		for from := range rows {
			for n := range rows - from + 1 {
				want, got := make([]float32, n*cols), make([]float32, n*cols)
				require.NoError(t, w.Rows(want, x, layer, from))
				require.NoError(t, f.Rows(got, x, layer, from))
				require.Equal(t, want, got)
			}
		}
		return nil
	}))
	for _, src := range []Source{w, f} {
		assert.ErrorContains(t, src.Rows(make([]float32, 4), WQ, 2, 0), "tensor 4 of layer 2 has no 4 elements from row 0 on")
		assert.Error(t, src.Rows(make([]float32, 8), WQ, 0, 3))
		assert.Error(t, src.Rows(make([]float32, 3), WQ, 0, 0))
		assert.Error(t, src.Rows(make([]float32, 4), WQ, 0, -1))
		assert.Error(t, src.Rows(make([]float32, 4), Embedding, 1, 0))
		assert.Error(t, src.Rows(nil, tensors, 0, 0))
	}
	require.NoError(t, f.Close())
	assert.ErrorIs(t, f.Rows(make([]float32, 4), WQ, 0, 0), os.ErrClosed)
	assert.ErrorContains(t, new(File).Rows(nil, WQ, 0, 0), "zero File")
}

func TestLoadDirRefuses(t *testing.T) {
	write := func(t *testing.T, files map[string][]byte) string {
		dir := t.TempDir()
		for name, b := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
		}
		return dir
	}
	model := modelFile(tinyFloats, tinyHeader(5)...)
	p, s := bytePieces()
	tok := tokenFile(7, p[:5], s[:5])
	w, tk, err := LoadDir(write(t, map[string][]byte{"m.bin": model, "tok5.bin": tok, "notes.txt": nil}))
	require.NoError(t, err)
	assert.Equal(t, 5, w.Config.Vocab)
	assert.Len(t, tk.pieces, 5)
	for name, c := range map[string]struct {
		files map[string][]byte
		text  string
	}{
		"nothing":             {nil, "want a *.bin model"},
		"no tokenizer":        {map[string][]byte{"m.bin": model}, "want a *.bin model and a tok*.bin tokenizer"},
		"no model":            {map[string][]byte{"tok5.bin": tok}, "want a *.bin model and a tok*.bin tokenizer"},
		"two models":          {map[string][]byte{"m.bin": model, "n.bin": model, "tok5.bin": tok}, "another file n.bin"},
		"two tokenizers":      {map[string][]byte{"m.bin": model, "tok4.bin": tok, "tok5.bin": tok}, "another file tok5.bin"},
		"an empty model":      {map[string][]byte{"m.bin": nil, "tok5.bin": tok}, "m.bin: model file: want a header"},
		"another's tokenizer": {map[string][]byte{"m.bin": model, "tok5.bin": tokenFile(7, p[:6], s[:6])}, "tok5.bin: tokenizer: "},
		"an empty tokenizer":  {map[string][]byte{"m.bin": model, "tok5.bin": nil}, "tok5.bin: tokenizer: want 4 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := LoadDir(write(t, c.files))
			require.ErrorContains(t, err, c.text)
		})
	}
	_, _, err = LoadDir(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func FuzzParseModel(f *testing.F) {
	f.Add(modelFile(tinyFloats, tinyHeader(5)...))
	f.Add(modelFile(tinyFloats+20, tinyHeader(-5)...))
	f.Add(modelFile(1, 2, 1, 1<<24, 1, 1, 5, 6))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := parseModel(b)
		if err != nil {
			return
		}
		require.NoError(t, w.Config.Validate())
		require.Len(t, w.Layers, w.Config.Layers)
		require.Len(t, w.Embedding, w.Config.Vocab*w.Config.Dim)
		require.LessOrEqual(t, w.Bytes(), int64(len(b)))
	})
}
