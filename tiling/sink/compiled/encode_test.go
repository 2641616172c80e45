package compiled

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/device/cpu"
	"goatb/status"
	"goatb/tiling/sink"
	"goatb/tiling/sink/capture"
	"goatb/tiling/sink/sinktest"
)

// refused wants an error of a file that is not read, with one fault.
func refused(t testing.TB, data []byte, about string) error {
	t.Helper()
	f, err := Decode(data)
	require.Error(t, err, about)
	require.Nil(t, f, about)
	require.ErrorIs(t, err, status.ErrInvalidParam, about)
	return err
}

// Every byte counts: a file with one bit of any of them turned over is refused. In
// the header each bit is.
func TestEveryFlippedByteIsRefused(t *testing.T) {
	data := encode(t, compile(t, sink.UpdateForm))
	for i := range data {
		for bit := range 8 {
			if i >= bodyAt && bit != i%8 {
				continue
			}
			data[i] ^= 1 << bit
			err := refused(t, data, fmt.Sprintf("bit %d of byte %d", bit, i))
			want := Damaged
			switch {
			case i < versionAt:
				want = Foreign
			case i < versionAt+4:
				want = OtherVersion
			}
			require.ErrorIs(t, err, want, "byte %d", i)
			data[i] ^= 1 << bit
		}
	}
	decoded(t, data)
}

func TestEveryCutIsRefused(t *testing.T) {
	data := encode(t, compile(t, sink.SuperKernelForm))
	for n := range data {
		refused(t, data[:n], fmt.Sprintf("%d bytes", n))
	}
	refused(t, append(slices.Clone(data), 0), "one byte more")
	refused(t, nil, "nothing")
	assert.ErrorIs(t, refused(t, []byte("{}"), "JSON"), Foreign)
	assert.ErrorContains(t, refused(t, data[:len(data)-3], "cut"), "bytes behind the header, got")
}

// Errors say what to do.
func TestErrorsOfFiles(t *testing.T) {
	data := encode(t, compile(t, sink.UpdateForm))
	newer := slices.Clone(data)
	newer[versionAt] = 9
	assert.EqualError(t, refused(t, newer, ""), "compiled graph: read: compiled by another version: want format 1, got 9; compile it again with this program (ERROR_INVALID_PARAM)")
	data[len(data)-2] ^= 1
	assert.ErrorContains(t, refused(t, data, ""), "damaged: want the checksum ")
	assert.ErrorContains(t, refused(t, data, ""), "copy the file again")
	for body, says := range map[string]string{
		`{"Units": [null]}`:   "graph 0 is missing",
		`{"Form": 7}`:         "unknown form 7",
		`{"Color": 1}`:        "unknown field",
		`{} {}`:               "3 bytes behind its end",
		`{"Machine": "many"}`: "cannot unmarshal",
		``:                    "EOF",
	} {
		err := refused(t, seal([]byte(body)), body)
		assert.ErrorIs(t, err, Damaged)
		assert.ErrorContains(t, err, says)
	}
}

// What nobody writes is refused although the checksum is right: each change of a
// file alone.
func TestWhatNobodyWrites(t *testing.T) {
	task := func(f *File, k sink.TaskKind) *sink.Task {
		for _, s := range f.Units[0].Segments {
			if s.List != nil {
				for i := range s.List.Tasks {
					if s.List.Tasks[i].Kind == k {
						return &s.List.Tasks[i]
					}
				}
			}
		}
		panic("no such task")
	}
	for name, tt := range map[string]struct {
		form   sink.Form
		change func(f *File, u *Unit)
		says   string
	}{
		"marks":            {0, func(_ *File, u *Unit) { u.Marks = u.Marks[1:] }, "want 4 marks and tilings, got 3 and 4"},
		"streams":          {0, func(_ *File, u *Unit) { u.Main = 1 }, "stream 1 of 1"},
		"no streams":       {0, func(_ *File, u *Unit) { u.Streams = 0 }, "stream 0 of 0"},
		"ids":              {0, func(_ *File, u *Unit) { u.Nodes[1].Op.ID = 0 }, "node 1: its id is 0"},
		"unknown shape":    {0, func(_ *File, u *Unit) { u.Nodes[0].Op.Unknown = true }, "unknown shapes"},
		"stream":           {0, func(_ *File, u *Unit) { u.Nodes[0].Op.Stream = -1 }, "want a stream below 1, got -1"},
		"a late producer":  {0, func(_ *File, u *Unit) { u.Nodes[1].Op.Inputs[0].Producer = 1 }, "node 1 makes what it reads"},
		"sunk for nothing": {0, func(_ *File, u *Unit) { u.Marks[2] = sink.Mark{Sunk: true} }, "node 2: it cannot be tiled on the device"},
		"sunk in v2":       {sink.V2Form, func(_ *File, u *Unit) { u.Marks[1].Sunk = true }, "in form v2"},
		"no tiling":        {0, func(_ *File, u *Unit) { u.Before[0] = nil }, "node 0: it has a tiling: want true, got false"},
		"a short tiling":   {0, func(_ *File, u *Unit) { u.Before[0].Data = nil }, "want a tiling of 8 bytes with blocks, got 0 bytes"},
		"no blocks":        {0, func(_ *File, u *Unit) { u.Before[0].BlockDim = 0 }, "and 0 blocks"},
		"segments":         {0, func(_ *File, u *Unit) { u.Segments = u.Segments[:1] }, "want 3 segments, got 1"},
		"a segment":        {0, func(_ *File, u *Unit) { u.Segments[0].Last = 0 }, "segment 0: want nodes 0 to 1, got 0 to 0"},
		"no list":          {0, func(_ *File, u *Unit) { u.Segments[0].List = nil }, "a task list where the host works"},
		"segments of v2":   {sink.V2Form, func(_ *File, u *Unit) { u.Segments = make([]capture.Segment, 1) }, "form v2 has no segments"},
		"many streams":     {0, func(_ *File, u *Unit) { u.Segments[0].List.Streams = make([]string, 999) }, "999 streams"},
		"many events":      {0, func(_ *File, u *Unit) { u.Segments[0].List.Events = 1 << 30 }, "events"},
		"kind":             {0, func(f *File, _ *Unit) { task(f, sink.NopTask).Kind = 99 }, "unknown kind 99"},
		"stream of a task": {0, func(f *File, _ *Unit) { task(f, sink.NopTask).Stream = 2 }, "stream 2"},
		"operation":        {0, func(f *File, _ *Unit) { task(f, sink.NopTask).Op = 3 }, "operation 3"},
		"no operation":     {0, func(f *File, _ *Unit) { task(f, sink.NopTask).Op = -1 }, "operation -1"},
		"event":            {0, func(f *File, _ *Unit) { task(f, sink.WaitTask).Event = -1 }, "event -1"},
		"target":           {0, func(f *File, _ *Unit) { task(f, sink.UpdateTask).Target = 0 }, "an update of task 0"},
		"far target":       {0, func(f *File, _ *Unit) { task(f, sink.UpdateTask).Target = 99 }, "an update of task 99"},
		"block dim":        {0, func(f *File, _ *Unit) { task(f, sink.VectorAllKernelTask).BlockDim = 1 << 31 }, "2147483648 blocks"},
		"sub":              {sink.SuperKernelForm, func(f *File, _ *Unit) { task(f, sink.PreprocessTask).Sub = 3 }, "operation 3 of a super kernel"},
		"flag":             {sink.SuperKernelForm, func(f *File, _ *Unit) { task(f, sink.SuperKernelTask).Subs[1].Flag = 9 }, "flag 9 in a super kernel"},
	} {
		t.Run(name, func(t *testing.T) {
			f := compile(t, tt.form)
			tt.change(f, f.Units[0])
			err := refused(t, encode(t, f), name)
			assert.ErrorIs(t, err, Damaged)
			assert.ErrorContains(t, err, tt.says)
		})
	}
}

var update = flag.Bool("update", false, "write testdata anew")

// The fields of a file are those of its format: whoever changes them changes
// Version.
func TestFormatHasAVersion(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "format %d\n", Version)
	writeType(&b, reflect.TypeFor[File](), "", map[reflect.Type]bool{})
	const file = "testdata/format.txt"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "raise Version, then run go test ./tiling/sink/compiled -update")
}

// writeType lists the fields of a type that JSON has, those of inner types deeper.
func writeType(w io.Writer, t reflect.Type, indent string, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for f := range t.Fields() {
		fmt.Fprintf(w, "%s%s %s\n", indent, f.Name, f.Type)
		writeType(w, f.Type, indent+"  ", seen)
	}
}

// FuzzDecode reads arbitrary bytes.
func FuzzDecode(f *testing.F) {
	data := encode(f, compile(f, sink.UpdateForm))
	f.Add(data)
	f.Add(data[:bodyAt])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := Decode(data); err == nil {
			use(t, file)
		}
	})
}

// FuzzBody reads arbitrary JSON under a right checksum: what is read can be shown,
// bound and loaded, or is refused.
func FuzzBody(f *testing.F) {
	for _, form := range sink.Forms() {
		f.Add(encode(f, compile(f, form))[bodyAt:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if file, err := Decode(seal(body)); err == nil {
			use(t, file)
		}
	})
}

// use does with a file what its users do.
func use(t testing.TB, f *File) {
	plans, err := f.Plans()
	if err == nil {
		for _, p := range plans {
			require.NoError(t, sink.WriteMarks(io.Discard, p.Ops, p.Marks))
			for _, s := range p.Segments {
				if s.List != nil {
					require.NoError(t, s.List.WriteText(io.Discard))
				}
			}
		}
	}
	again := encode(t, f)
	require.Equal(t, again, encode(t, decoded(t, again)))
	p, err := f.Plan(sinktest.Graph(), sinktest.Settings(f.Form))
	if err != nil || p == nil || f.Form == sink.V2Form {
		return
	}
	dev, err := cpu.New(cpu.WithInline())
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	if g, err := p.Load(dev); err == nil {
		require.NoError(t, g.Close())
	}
}

// The seeds of the fuzz targets can be used.
func TestFilesCanBeUsed(t *testing.T) {
	for _, form := range sink.Forms() {
		data := encode(t, compile(t, form))
		use(t, decoded(t, data))
		require.True(t, json.Valid(data[bodyAt:]))
		require.True(t, bytes.HasPrefix(data, []byte(magic)))
	}
}
