package tensor

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzSafetensors wants every input refused with an error or read into tensors
// that cover its data, the same from both readers, and that survive writing.
func FuzzSafetensors(f *testing.F) {
	f.Add(rawFile(goodHeader, goodData))
	f.Add([]byte("1234567"))
	for _, bad := range badFiles {
		f.Add(rawFile(bad.header, bad.data))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		file, err := ParseSafetensors(raw)
		read, readErr := ReadSafetensors(bytes.NewReader(raw), int64(len(raw)))
		require.Equal(t, err, readErr)
		if err != nil {
			return
		}
		require.Equal(t, file.Entries(), read.Entries())
		checkCovers(t, file, len(dataSection(raw)))
		var out bytes.Buffer
		require.NoError(t, WriteSafetensors(&out, file.Entries(), file.Metadata()))
		back, err := ParseSafetensors(out.Bytes())
		require.NoError(t, err)
		require.Equal(t, file.Entries(), back.Entries())
		require.Equal(t, file.Metadata(), back.Metadata())
	})
}
