package tensor

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/internal/refdata"
)

// goldenFiles lists the golden cases beside the module and skips without them.
func goldenFiles(t *testing.T) []string {
	t.Helper()
	golden := refdata.Path(t, "golden")
	var files []string
	require.NoError(t, filepath.WalkDir(golden, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".safetensors" {
			files = append(files, path)
		}
		return err
	}))
	return files
}

func TestSafetensorsReadsEveryGoldenCase(t *testing.T) {
	files := goldenFiles(t)
	require.Len(t, files, 862)
	tensors, empty, unaligned := 0, 0, 0
	for _, path := range files {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		f, err := OpenSafetensors(path)
		require.NoError(t, err)
		require.NotEmpty(t, f.Entries(), path)
		require.NotEmpty(t, f.Metadata()["OpName"], path)
		for i := range f.Entries() {
			e := &f.Entries()[i]
			tensors++
			if e.Desc.Empty() {
				empty++
			}
			if !e.Aligned() {
				unaligned++
			}
			copied := Entry{Desc: e.Desc, Data: e.AlignedData()}
			require.True(t, copied.Aligned(), "%s %s", path, e.Name)
			require.True(t, bytes.Equal(e.Data, copied.Data), "%s %s", path, e.Name)
		}
		checkRewrite(t, path, raw, f)
		require.NoError(t, f.Close())
	}
	assert.Equal(t, []int{4465, 14, 331}, []int{tensors, empty, unaligned}, "tensors, empty ones, unaligned ones")
}

// checkRewrite writes the file again and wants the same tensors and the same
// data section, byte by byte.
func checkRewrite(t *testing.T, path string, raw []byte, f *File) {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, WriteSafetensors(&out, f.Entries(), f.Metadata()), path)
	require.True(t, bytes.Equal(dataSection(raw), dataSection(out.Bytes())), path)
	back, err := ReadSafetensors(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err, path)
	require.Equal(t, f.Metadata(), back.Metadata(), path)
	require.Len(t, back.Entries(), len(f.Entries()), path)
	for i := range f.Entries() {
		want, got := f.Entries()[i], back.Entries()[i]
		require.True(t, bytes.Equal(want.Data, got.Data), "%s %s", path, want.Name)
		want.Data, got.Data = nil, nil
		require.Equal(t, want, got, path)
	}
}

func dataSection(raw []byte) []byte { return raw[8+binary.LittleEndian.Uint64(raw):] }
