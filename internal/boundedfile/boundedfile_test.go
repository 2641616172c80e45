package boundedfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("12345"), 0o600))
	b, err := Read(path, 5)
	require.NoError(t, err)
	assert.Equal(t, "12345", string(b))
	_, err = Read(path, 4)
	require.ErrorContains(t, err, path+": want at most 4 bytes, got more")
	_, err = Read(path+"x", 5)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Read(t.TempDir(), 5)
	require.Error(t, err)
	if _, err := os.Stat("/dev/zero"); err == nil {
		_, err = Read("/dev/zero", 1<<16)
		require.ErrorContains(t, err, "/dev/zero: want at most 65536 bytes")
	}
}
