package llama_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/model/llama"
)

// TestTokenizer encodes the text that the golden ids spell.
func TestTokenizer(t *testing.T) {
	dir := stories(t)
	_, tok, err := llama.LoadDir(dir)
	require.NoError(t, err)
	ids := []int32{1, 403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338}
	text := tok.Decode(ids)
	require.Equal(t, "Once upon a time, there was a little g", text[:38])
	require.Equal(t, ids[:5], tok.Encode("Once upon a time")[:5])
	for _, s := range []string{"Once upon a time", "Lily. She loved to play!", "é\n", "x", ""} {
		require.Equal(t, s, tok.Decode(tok.Encode(s)))
	}
}

// TestCorruptModels cuts and changes a model file: every load is an error.
func TestCorruptModels(t *testing.T) {
	dir := stories(t)
	b, err := os.ReadFile(filepath.Join(dir, "stories260K.bin"))
	require.NoError(t, err)
	load := func(b []byte) error {
		path := filepath.Join(t.TempDir(), "m.bin")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, err := llama.LoadFile(path)
		return err
	}
	require.NoError(t, load(b))
	for _, n := range []int{0, 1, 27, 28, 29, 1000, len(b) / 2, len(b) - 1} {
		require.Error(t, load(b[:n]), "cut to %d bytes", n)
	}
	require.ErrorContains(t, load(append(b[:len(b):len(b)], 0, 0, 0, 0)), "after the last tensor")
	for field := range 7 {
		for _, v := range []int32{0, -1, 1, 1 << 30, -1 << 31, 7} {
			c := append([]byte(nil), b...)
			binary.LittleEndian.PutUint32(c[4*field:], uint32(v))
			require.Error(t, load(c), "field %d is %d", field, v)
		}
	}
}

func TestCorruptTokenizers(t *testing.T) {
	dir := stories(t)
	b, err := os.ReadFile(filepath.Join(dir, "tok512.bin"))
	require.NoError(t, err)
	load := func(b []byte, vocab int) error {
		path := filepath.Join(t.TempDir(), "tok.bin")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		_, err := llama.LoadTokenizer(path, vocab)
		return err
	}
	require.NoError(t, load(b, 512))
	for n := 0; n < len(b); n += 97 {
		require.Error(t, load(b[:n], 512), "cut to %d bytes", n)
	}
	require.Error(t, load(b, 513))
	c := append([]byte(nil), b...)
	binary.LittleEndian.PutUint32(c[8:], 1<<31-1)
	require.ErrorContains(t, load(c, 512), "bytes, ")
}

func TestFoldersWithoutAModel(t *testing.T) {
	dir := t.TempDir()
	_, _, err := llama.LoadDir(dir)
	require.ErrorContains(t, err, "want a *.bin model")
	for _, f := range []string{"a.bin", "b.bin"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
	}
	_, _, err = llama.LoadDir(dir)
	require.ErrorContains(t, err, "found another file")
}
