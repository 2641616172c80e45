package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sizes of the tiny model: dim 4, hidden 3, 2 layers, 2 heads on 1, vocab 5,
// 6 positions.
const tinyFloats = 5*4 + 2*(4+16+8+8+16+4+12+12+12) + 4 + 6*2

// tinyModel returns the two files of a model in the format of llama2.c.
func tinyModel() (model, tok []byte) {
	for _, h := range []int32{4, 3, 2, 2, 1, 5, 6} {
		model = binary.LittleEndian.AppendUint32(model, uint32(h))
	}
	for i := range tinyFloats {
		model = binary.LittleEndian.AppendUint32(model, math.Float32bits(float32(i%7)/8-0.25))
	}
	tok = binary.LittleEndian.AppendUint32(tok, 7)
	for i, p := range []string{"<unk>", "\n<s>\n", "\n</s>\n", "a", " a"} {
		tok = binary.LittleEndian.AppendUint32(tok, math.Float32bits(-float32(i)))
		tok = binary.LittleEndian.AppendUint32(tok, uint32(len(p)))
		tok = append(tok, p...)
	}
	return model, tok
}

// folder writes a model folder.
func folder(t *testing.T, model, tok []byte) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tiny.bin"), model, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tok5.bin"), tok, 0o600))
	return dir
}

// with returns a copy with the int32 at off replaced.
func with(b []byte, off int, v uint32) []byte {
	b = bytes.Clone(b)
	binary.LittleEndian.PutUint32(b[off:], v)
	return b
}

// TestDamagedModels runs generate and graph on folders whose files were cut at
// many places, belong to other models or hold absurd sizes and values.
func TestDamagedModels(t *testing.T) {
	cleanEnv(t)
	model, tok := tinyModel()
	good := folder(t, model, tok)
	require.Regexp(t, `^[0-4]( [0-4]){5}\n$`, fine(t, "generate", "--model", good, "--steps", "6", "--ids", "--block-size", "4"))
	fine(t, "graph", "--model", good)
	type damage struct {
		name       string
		model, tok []byte
		says       string
	}
	list := []damage{
		{"a longer model", append(bytes.Clone(model), 0), tok, "tiny.bin: model file"},
		{"a longer tokenizer", model, append(bytes.Clone(tok), 0), "tok5.bin: tokenizer: 1 bytes after"},
		{"swapped files", tok, model, "tiny.bin"},
		{"a negative token length", model, with(tok, 8, math.MaxUint32), "token 0 has -1 bytes"},
		{"a huge token length", model, with(tok, 8, math.MaxInt32), "token 0 has 2147483647 bytes"},
		{"a score that is no number", model, with(tok, 4, 0x7fc00000), "token 0 has a score"},
	}
	for field, name := range []string{"dim", "hidden", "layers", "heads", "kv_heads", "vocab", "max_seq"} {
		for _, v := range []uint32{0, 0x80000000, math.MaxInt32, 1 << 24} {
			list = append(list, damage{fmt.Sprintf("%s of %d", name, int32(v)), with(model, 4*field, v), tok, "tiny.bin: model"})
		}
	}
	for n := 0; n < len(model); n += 1 + len(model)/40 {
		list = append(list, damage{fmt.Sprintf("%d bytes of a model", n), model[:n], tok, "tiny.bin: model file"})
	}
	for n := range tok {
		list = append(list, damage{fmt.Sprintf("%d bytes of a tokenizer", n), model, tok[:n], "tok5.bin: tokenizer: "})
	}
	for _, d := range list {
		t.Run(d.name, func(t *testing.T) {
			dir := folder(t, d.model, d.tok)
			refused(t, badCase{args: []string{"generate", "--model", dir, "--steps", "6"}, says: d.says})
			refused(t, badCase{args: []string{"graph", "--model", dir}, says: d.says})
		})
	}
	// A weight that is no number spoils every logit, and no token follows.
	spoilt := folder(t, with(model, 4*(7+20), 0x7fc00000), tok)
	refused(t, badCase{args: []string{"generate", "--model", spoilt, "--steps", "6"}, says: "position 0: sampler: logit 0 is NaN"})
	refused(t, badCase{args: []string{"generate", "--model", good, "--prompt", "b"}, says: "no token for byte 0x20"})
	refused(t, badCase{args: []string{"generate", "--model", good, "--steps", "7"}, says: "room for 6 steps in the model's 6 positions"})
}
