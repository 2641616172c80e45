package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

// rawFile joins a header and data as they stand.
func rawFile(header, data string) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

const (
	goodHeader = `{"__metadata__":{"k":"v","":""},` +
		`"b":{"dtype":"I16","shape":[2,1],"data_offsets":[4,8]},` +
		`"none":{"shape":[3,0],"data_offsets":[8,8],"dtype":"F64"},` +
		`"a":{"data_offsets":[0,4],"dtype":"F32","shape":[]},` +
		`"\u00e9":{"dtype":"BOOL","shape":[1,1,1,1,1,1,1,2],"data_offsets":[8,10]}}  `
	goodData = "abcdefghij"
)

// checkGood compares with the content of goodHeader and goodData.
func checkGood(t *testing.T, f *File) {
	t.Helper()
	assert.Equal(t, []Entry{
		{Name: "a", Desc: Of(Float32, 1), Scalar: true, Data: []byte("abcd")},
		{Name: "b", Desc: Of(Int16, 2, 1), Data: []byte("efgh")},
		{Name: "none", Desc: Of(Float64, 3, 0), Data: []byte{}},
		{Name: "é", Desc: Of(Bool, 1, 1, 1, 1, 1, 1, 1, 2), Data: []byte("ij")},
	}, f.Entries())
	assert.Equal(t, map[string]string{"k": "v", "": ""}, f.Metadata())
	assert.Same(t, &f.Entries()[1], f.Entry("b"))
	assert.Nil(t, f.Entry("__metadata__"))
	assert.Nil(t, f.Entry("c"))
}

func TestParseSafetensors(t *testing.T) {
	raw := rawFile(goodHeader, goodData)
	f, err := ParseSafetensors(raw)
	require.NoError(t, err)
	checkGood(t, f)
	assert.Same(t, &raw[len(raw)-2], unsafe.SliceData(f.Entry("é").Data), "data are parts of the argument")
	assert.Equal(t, 2, cap(f.Entry("é").Data), "appending to data must not reach another tensor")
	assert.NoError(t, f.Close())
	checkGood(t, f)
}

func TestReadSafetensors(t *testing.T) {
	raw := rawFile(goodHeader, goodData)
	f, err := ReadSafetensors(bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	checkGood(t, f)
	clear(raw)
	checkGood(t, f)
}

func TestOpenSafetensors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "good.safetensors")
	require.NoError(t, os.WriteFile(path, rawFile(goodHeader, goodData), 0o600))
	f, err := OpenSafetensors(path)
	require.NoError(t, err)
	checkGood(t, f)
	assert.Equal(t, canMap, f.mapped != nil)
	require.NoError(t, f.Close())
	require.NoError(t, f.Close(), "closing twice is legal")
	if canMap {
		assert.Nil(t, f.Entry("a").Data)
	}
}

func TestOpenSafetensorsErrors(t *testing.T) {
	dir := t.TempDir()
	path := func(name string, content []byte) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, content, 0o600))
		return p
	}
	_, err := OpenSafetensors(filepath.Join(dir, "absent"))
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorIs(t, err, status.ErrInvalidParam)
	_, err = OpenSafetensors(dir)
	assert.ErrorContains(t, err, "not a regular file")
	_, err = OpenSafetensors(path("empty", nil))
	assert.ErrorContains(t, err, "want at least 8 bytes, got 0")
	_, err = OpenSafetensors(path("short", []byte("1234567")))
	assert.ErrorContains(t, err, "want at least 8 bytes, got 7")
	corrupt := path("corrupt", rawFile("{", ""))
	_, err = OpenSafetensors(corrupt)
	assert.EqualError(t, err, "safetensors: "+corrupt+": header: unexpected EOF (ERROR_INVALID_PARAM)")
}

func TestSafetensorsWithoutTensors(t *testing.T) {
	f, err := ParseSafetensors(rawFile("{}", ""))
	require.NoError(t, err)
	assert.Empty(t, f.Entries())
	assert.Empty(t, f.Metadata())
	var out bytes.Buffer
	require.NoError(t, WriteSafetensors(&out, nil, nil))
	assert.Equal(t, rawFile("{}      ", ""), out.Bytes())
}

// TestSafetensorsOfEmptyTensors wants data that are empty but there, as nil
// means a closed file.
func TestSafetensorsOfEmptyTensors(t *testing.T) {
	raw := rawFile(`{"a":{"dtype":"I8","shape":[0,0,0,0,0,0,0,100],"data_offsets":[0,0]}}`, "")
	want := []Entry{{Name: "a", Desc: Of(Int8, 0, 0, 0, 0, 0, 0, 0, 100), Data: []byte{}}}
	parsed, err := ParseSafetensors(raw)
	require.NoError(t, err)
	assert.Equal(t, want, parsed.Entries())
	read, err := ReadSafetensors(bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	assert.Equal(t, want, read.Entries())
}

// badFiles are files that no reader may accept, with a part of the error.
var badFiles = []struct {
	name, header, data, want string
}{
	{"no header", "", "", `begins with {, got ""`},
	{"blank first", ` {}`, "", `begins with {`},
	{"not an object", `[]`, "", `begins with {`},
	{"cut", `{"a":`, "", "unexpected EOF"},
	{"cut in a string", `{"a`, "", "unexpected EOF"},
	{"trailing comma", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},}`, "x", "invalid character"},
	{"no comma", `{"a":{"dtype":"I8","shape":[1] "data_offsets":[0,1]}}`, "x", "invalid character"},
	{"text after the object", `{} x`, "", `only blanks after the header's object, got " x"`},
	{"second object", `{}{}`, "", "only blanks"},
	{"zero bytes after the object", "{}\x00\x00", "", "only blanks"},
	{"not UTF-8", "{\"\xff\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x", "not UTF-8"},
	{"tensor is no object", `{"a":1}`, "", `"a": want {, got 1`},
	{"tensor is null", `{"a":null}`, "", `"a": want {, got <nil>`},

	{"repeated tensor", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}}`, "xy", `"a" appears twice`},
	{"repeated by escape", `{"a":{"dtype":"I8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"I8","shape":[0],"data_offsets":[0,0]}}`, "", `"a" appears twice`},
	{"repeated field", `{"a":{"dtype":"I8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, "x", `"a": "dtype" appears twice`},
	{"unknown field", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1],"x":1}}`, "x", `"x": unknown field`},
	{"field in another case", `{"a":{"DType":"I8","shape":[1],"data_offsets":[0,1]}}`, "x", "unknown field"},
	{"missing field", `{"a":{"dtype":"I8","shape":[1]}}`, "", "want dtype, shape and data_offsets, got 2 of them"},
	{"no field", `{"a":{}}`, "", "got 0 of them"},

	{"metadata is no object", `{"__metadata__":[]}`, "", `"__metadata__": want {`},
	{"metadata value is a number", `{"__metadata__":{"k":1}}`, "", `"k": want a string, got 1`},
	{"metadata value is null", `{"__metadata__":{"k":null}}`, "", `"k": want a string`},
	{"metadata value is an object", `{"__metadata__":{"k":{}}}`, "", `"k": want a string, got {`},
	{"repeated metadata", `{"__metadata__":{"k":"1","k":"1"}}`, "", `"k" appears twice`},
	{"metadata twice", `{"__metadata__":{},"__metadata__":{}}`, "", `"__metadata__" appears twice`},

	{"dtype is a number", `{"a":{"dtype":1,"shape":[1],"data_offsets":[0,1]}}`, "x", `"dtype": want a string, got 1`},
	{"unknown dtype", `{"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}`, "x", `unknown type "F8_E4M3"`},
	{"our name of a dtype", `{"a":{"dtype":"int8","shape":[1],"data_offsets":[0,1]}}`, "x", `unknown type "int8"`},
	{"empty dtype", `{"a":{"dtype":"","shape":[1],"data_offsets":[0,1]}}`, "x", `unknown type ""`},

	{"rank 9", `{"a":{"dtype":"I8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}`, "x", `"shape": want at most 8 integers`},
	{"shape is a number", `{"a":{"dtype":"I8","shape":1,"data_offsets":[0,1]}}`, "x", `"shape": want [, got 1`},
	{"negative dimension", `{"a":{"dtype":"I8","shape":[-1],"data_offsets":[0,1]}}`, "x", "got -1"},
	{"two negative dimensions", `{"a":{"dtype":"I8","shape":[-1,-1],"data_offsets":[0,1]}}`, "x", "got -1"},
	{"fraction", `{"a":{"dtype":"I8","shape":[1.0],"data_offsets":[0,1]}}`, "x", "got 1.0"},
	{"exponent", `{"a":{"dtype":"I8","shape":[1e0],"data_offsets":[0,1]}}`, "x", "got 1e0"},
	{"dimension above int64", `{"a":{"dtype":"I8","shape":[9223372036854775808],"data_offsets":[0,1]}}`, "x", "got 9223372036854775808"},
	{"string in the shape", `{"a":{"dtype":"I8","shape":["1"],"data_offsets":[0,1]}}`, "x", "want an integer, got 1"},
	{"size leaves int64", `{"a":{"dtype":"I8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, "", "leaves int64"},
	{"bytes leave int64", `{"a":{"dtype":"F16","shape":[9223372036854775807],"data_offsets":[0,0]}}`, "", "leaves int64"},

	{"one offset", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[0]}}`, "x", "want 2 integers, got 1"},
	{"three offsets", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1,1]}}`, "x", "want at most 2 integers"},
	{"negative offset", `{"a":{"dtype":"I8","shape":[2],"data_offsets":[-1,1]}}`, "x", "got -1"},
	{"offsets swapped", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[1,0]}}`, "x", "data_offsets in order, got [1,0]"},
	{"range too short", `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, "abcd", "want 8 bytes for f32[2], got 4"},
	{"range too long", `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}`, "abcdefgh", "want 4 bytes for f32[1], got 8"},
	{"empty tensor with bytes", `{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,4]}}`, "abcd", "want 0 bytes for f32[0], got 4"},
	{"scalar without bytes", `{"a":{"dtype":"F32","shape":[],"data_offsets":[0,0]}}`, "", "want 4 bytes for f32[1], got 0"},
	{"outside the file", `{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}`, "x", "want data within 1 bytes, got [0,2]"},
	{"far outside the file", `{"a":{"dtype":"I8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]}}`, "x", "want data within 1 bytes"},
	{"overlap", `{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[1,3]}}`, "xyz", `"b": data at [1,3] overlap those of "a"`},
	{"same range", `{"a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}}`, "xy", "overlap"},
	{"gap", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"I8","shape":[1],"data_offsets":[2,3]}}`, "xyz", `"b": the bytes [1,2] before it belong to no tensor`},
	{"first byte unused", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[1,2]}}`, "xy", "the bytes [0,1]"},
	{"trailing bytes", `{"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, "xyz", "want 1 bytes of data, got 3"},
	{"data without a tensor", `{}`, "x", "want 0 bytes of data, got 1"},
}

func TestSafetensorsRefusesBadFiles(t *testing.T) {
	for _, tt := range badFiles {
		t.Run(tt.name, func(t *testing.T) {
			raw := rawFile(tt.header, tt.data)
			_, err := ParseSafetensors(raw)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorIs(t, err, status.ErrInvalidParam)
			assert.True(t, strings.HasPrefix(err.Error(), "safetensors: "), err.Error())
			_, readErr := ReadSafetensors(bytes.NewReader(raw), int64(len(raw)))
			assert.Equal(t, err, readErr, "both readers must agree")
		})
	}
}

func TestSafetensorsHeaderLength(t *testing.T) {
	for _, tt := range []struct {
		name   string
		length uint64
		rest   string
		want   string
	}{
		{"one byte too long", 3, "{}", "want a header of at most 2 bytes, got 3"},
		{"2^63", 1 << 63, "{}", "want a header of at most 2 bytes, got 9223372036854775808"},
		{"2^64-1", math.MaxUint64, "{}", "got 18446744073709551615"},
		{"too short", 1, "{}", "unexpected EOF"},
		{"zero", 0, "{}", "begins with {"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			raw := append(binary.LittleEndian.AppendUint64(nil, tt.length), tt.rest...)
			_, err := ParseSafetensors(raw)
			assert.ErrorContains(t, err, tt.want)
		})
	}
	raw := binary.LittleEndian.AppendUint64(nil, maxHeader+1)
	_, err := ReadSafetensors(bytes.NewReader(raw), 1<<40)
	assert.ErrorContains(t, err, "want a header of at most 100000000 bytes, got 100000001")
}

// TestSafetensorsErrorsStayShort keeps a damaged file from filling a log.
func TestSafetensorsErrorsStayShort(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, header := range []string{
		`{"` + long + `":1}`,
		`{"a":{"` + long + `":1}}`,
		`{"a":{"dtype":"` + long + `"}}`,
		`{"a":{"shape":[` + strings.Repeat("9", 10_000) + `]}}`,
		`{"__metadata__":{"` + long + `":{}}}`,
		`{}` + long,
	} {
		_, err := ParseSafetensors(rawFile(header, ""))
		require.Error(t, err)
		assert.Less(t, len(err.Error()), 400)
	}
}

func TestSafetensorsRefusesEveryTruncation(t *testing.T) {
	raw := rawFile(goodHeader, goodData)
	for n := range raw {
		_, err := ParseSafetensors(raw[:n])
		assert.Error(t, err, "%d of %d bytes", n, len(raw))
		_, err = ReadSafetensors(bytes.NewReader(raw[:n]), int64(n))
		assert.Error(t, err, "%d of %d bytes", n, len(raw))
		_, err = ReadSafetensors(bytes.NewReader(raw[:n]), int64(len(raw)))
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes that were said to be %d", n, len(raw))
	}
	for _, n := range []int64{-1, 0, 7} {
		_, err := ReadSafetensors(bytes.NewReader(raw), n)
		assert.ErrorContains(t, err, "want at least 8 bytes", "size %d", n)
	}
}

func TestSafetensorsOutlivesEveryChangedByte(t *testing.T) {
	raw := rawFile(goodHeader, goodData)
	accepted := 0
	for i := range len(raw) - len(goodData) {
		for _, c := range []byte{0, ' ', '"', '{', '}', '9', 'x', 0xff, raw[i] ^ 1} {
			changed := bytes.Clone(raw)
			changed[i] = c
			if f, err := ParseSafetensors(changed); err == nil {
				accepted++
				checkCovers(t, f, len(goodData))
			}
		}
	}
	assert.Positive(t, accepted, "a changed letter of a name is still a file")
}

// checkCovers wants entries that fit their descriptors and cover the data.
func checkCovers(t *testing.T, f *File, size int) {
	t.Helper()
	for i := range f.Entries() {
		e := &f.Entries()[i]
		require.Equal(t, storedBytes(e), int64(len(e.Data)))
		require.Same(t, e, f.Entry(e.Name))
		size -= len(e.Data)
	}
	require.Zero(t, size)
}

// TestReadSafetensorsTakesNoMemoryForAPromise reads a small file whose size is
// said to be 8 TiB, with a header that agrees.
func TestReadSafetensorsTakesNoMemoryForAPromise(t *testing.T) {
	raw := rawFile(`{"a":{"dtype":"I8","shape":[8796093022208],"data_offsets":[0,8796093022208]}}`, "abc")
	size := int64(len(raw)) - 3 + 1<<43
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadSafetensors(bytes.NewReader(raw), size)
	runtime.ReadMemStats(&after)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// failingReader fails for every read that reaches past the limit.
type failingReader struct {
	data  []byte
	limit int64
}

var errDisk = errors.New("disk on fire")

func (r failingReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > r.limit {
		return 0, errDisk
	}
	return bytes.NewReader(r.data).ReadAt(p, off)
}

func TestReadSafetensorsReturnsTheReadersError(t *testing.T) {
	raw := rawFile(goodHeader, goodData)
	for limit := range int64(len(raw)) {
		_, err := ReadSafetensors(failingReader{raw, limit}, int64(len(raw)))
		require.ErrorIs(t, err, errDisk, "limit %d", limit)
		require.ErrorIs(t, err, status.ErrInvalidParam)
	}
	f, err := ReadSafetensors(failingReader{raw, int64(len(raw))}, int64(len(raw)))
	require.NoError(t, err)
	checkGood(t, f)
}

func TestEntryAlignment(t *testing.T) {
	memory := make([]byte, 64)
	for _, tt := range []struct {
		t     DType
		align int
	}{{Int8, 1}, {Float16, 2}, {Float32, 4}, {Int64, 8}, {Complex64, 8}, {Complex128, 8}} {
		for off := range 16 {
			e := Entry{Desc: Of(tt.t, 1), Data: memory[off : off+int(tt.t.Size())]}
			copy(e.Data, "0123456789abcdef")
			aligned := off%tt.align == 0
			require.Equal(t, aligned, e.Aligned(), "%s at %d", tt.t, off)
			got := e.AlignedData()
			assert.Equal(t, e.Data, got)
			assert.Equal(t, aligned, unsafe.SliceData(got) == unsafe.SliceData(e.Data), "no copy of aligned data, %s at %d", tt.t, off)
			copied := Entry{Desc: e.Desc, Data: got}
			assert.True(t, copied.Aligned())
		}
	}
	empty := Entry{Desc: Of(Float64, 0)}
	assert.True(t, empty.Aligned())
	assert.Empty(t, empty.AlignedData())
}
