package tensor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/status"
)

func TestWriteSafetensorsByHand(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteSafetensors(&out, []Entry{
		{Name: "w", Desc: Of(BFloat16, 1, 2), Data: []byte{1, 2, 3, 4}},
		{Name: `quote " \ <é>`, Desc: Of(Bool, 1), Scalar: true, Data: []byte{1}},
		{Name: "none", Desc: Of(Float64, 0)},
	}, map[string]string{"z": "last", "a": "line\nfeed"}))
	header := `{"__metadata__":{"a":"line\nfeed","z":"last"},` +
		`"w":{"dtype":"BF16","shape":[1,2],"data_offsets":[0,4]},` +
		`"quote \" \\ \u003cé\u003e":{"dtype":"BOOL","shape":[],"data_offsets":[4,5]},` +
		`"none":{"dtype":"F64","shape":[0],"data_offsets":[5,5]}}`
	header += strings.Repeat(" ", -len(header)&7)
	assert.Equal(t, string(rawFile(header, "\x01\x02\x03\x04\x01")), out.String())
}

func TestWriteSafetensorsReadsBack(t *testing.T) {
	f, err := ParseSafetensors(rawFile(goodHeader, goodData))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, WriteSafetensors(&out, f.Entries(), f.Metadata()))
	back, err := ParseSafetensors(out.Bytes())
	require.NoError(t, err)
	checkGood(t, back)
	assert.Zero(t, (8+binary.LittleEndian.Uint64(out.Bytes()))%8, "data begin at a multiple of 8")
}

func TestWriteSafetensorsWritesEveryType(t *testing.T) {
	for d := Float32; d < numDTypes; d++ {
		var out bytes.Buffer
		data := FromFloat64s(d, []float64{1, 0})
		err := WriteSafetensors(&out, []Entry{{Name: "x", Desc: Of(d, 2), Data: data}}, nil)
		if d == Complex128 {
			assert.ErrorContains(t, err, "the format has no type complex128")
			continue
		}
		require.NoError(t, err, d)
		f, err := ParseSafetensors(out.Bytes())
		require.NoError(t, err, d)
		assert.Equal(t, []Entry{{Name: "x", Desc: Of(d, 2), Data: data}}, f.Entries())
		assert.Empty(t, f.Metadata())
	}
}

func TestWriteSafetensorsErrors(t *testing.T) {
	one := func(e Entry) []Entry { return []Entry{e} }
	for _, tt := range []struct {
		name     string
		entries  []Entry
		metadata map[string]string
		want     string
	}{
		{"repeated name", []Entry{{Name: "a", Desc: Of(Int8, 0)}, {Name: "a", Desc: Of(Int8, 0)}}, nil, `tensor "a" appears twice`},
		{"metadata's name", one(Entry{Name: "__metadata__", Desc: Of(Int8, 0)}), nil, `cannot be named "__metadata__"`},
		{"name is not UTF-8", one(Entry{Name: "\xff", Desc: Of(Int8, 0)}), nil, "cannot be named"},
		{"no type", one(Entry{Name: "a", Desc: Of(Undefined, 0)}), nil, "the format has no type undefined"},
		{"unknown type", one(Entry{Name: "a", Desc: Of(DType(99), 0)}), nil, "the format has no type dtype(99)"},
		{"rank 0", one(Entry{Name: "a", Desc: Of(Int8)}), nil, "want rank 1 to 8, got 0"},
		{"rank 9", one(Entry{Name: "a", Desc: Of(Int8, 1, 1, 1, 1, 1, 1, 1, 1, 1), Data: []byte{1}}), nil, "want rank 1 to 8, got 9"},
		{"scalar of two elements", one(Entry{Name: "a", Desc: Of(Int8, 2), Scalar: true, Data: []byte{1, 2}}), nil, "want shape [1] for a scalar, got [2]"},
		{"negative dimension", one(Entry{Name: "a", Desc: Of(Int8, -1)}), nil, "int8[-1] has no size"},
		{"negative and zero", one(Entry{Name: "a", Desc: Of(Int8, 0, -1)}), nil, "int8[0,-1] has no size"},
		{"size leaves int64", one(Entry{Name: "a", Desc: Of(Int8, 1<<32, 1<<32)}), nil, "has no size"},
		{"short data", one(Entry{Name: "a", Desc: Of(Int16, 2), Data: []byte{1, 2, 3}}), nil, "want 4 bytes for int16[2], got 3"},
		{"no data", one(Entry{Name: "a", Desc: Of(Int16, 2)}), nil, "want 4 bytes for int16[2], got 0"},
		{"metadata key", nil, map[string]string{"\xff": ""}, "is not UTF-8"},
		{"metadata value", nil, map[string]string{"key": "\xff"}, `metadata "key" is not UTF-8`},
		{"header too long", nil, map[string]string{"key": strings.Repeat("x", maxHeader)}, "want a header of at most 100000000 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			err := WriteSafetensors(&out, tt.entries, tt.metadata)
			assert.ErrorContains(t, err, tt.want)
			assert.ErrorIs(t, err, status.ErrInvalidParam)
			assert.Zero(t, out.Len(), "nothing is written")
		})
	}
}

// fullDisk takes some bytes, then fails.
type fullDisk struct{ room int }

var errFull = errors.New("no space left")

func (d *fullDisk) Write(p []byte) (int, error) {
	if len(p) > d.room {
		return d.room, errFull
	}
	d.room -= len(p)
	return len(p), nil
}

func TestWriteSafetensorsReturnsTheWritersError(t *testing.T) {
	entries := []Entry{{Name: "a", Desc: Of(Int8, 3), Data: []byte("abc")}, {Name: "b", Desc: Of(Int8, 3), Data: []byte("def")}}
	var whole bytes.Buffer
	require.NoError(t, WriteSafetensors(&whole, entries, nil))
	for room := range whole.Len() {
		require.ErrorIs(t, WriteSafetensors(&fullDisk{room}, entries, nil), errFull, "room for %d", room)
	}
	require.NoError(t, WriteSafetensors(&fullDisk{whole.Len()}, entries, nil))
}
