package tensor

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"goatb/status"
)

// WriteSafetensors writes a safetensors file with the tensors' data in the
// given order, and metadata where it is not empty. Layouts are not stored: data
// are taken as they lie. The header is padded so that data begin at a multiple
// of 8 bytes; a tensor is aligned when the ones before it have no smaller
// elements, or sizes that are multiples of its element.
//
// ErrInvalidParam: a name that is repeated, not UTF-8 or "__metadata__", a type
// that the format lacks, a rank outside 1..8, a negative dimension, a scalar
// whose shape is not [1], data of another size than the descriptor's, a header
// above 100 MB; and the errors of w.
func WriteSafetensors(w io.Writer, tensors []Entry, metadata map[string]string) error {
	if err := status.Given("write safetensors", "w", w); err != nil {
		return err
	}
	header, err := encodeHeader(tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return fileErrorf("write the header: %w", err)
	}
	for i := range tensors {
		if _, err := w.Write(tensors[i].Data); err != nil {
			return fileErrorf("write tensor %.64q: %w", tensors[i].Name, err)
		}
	}
	return nil
}

// encodeHeader returns the length and the padded JSON.
func encodeHeader(tensors []Entry, metadata map[string]string) ([]byte, error) {
	b, err := appendMetadata(append(make([]byte, 8), '{'), metadata)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(tensors))
	off := int64(0)
	for i := range tensors {
		e := &tensors[i]
		if err := checkEntry(e); err != nil {
			return nil, err
		}
		if seen[e.Name] {
			return nil, fileErrorf("tensor %.64q appears twice", e.Name)
		}
		seen[e.Name] = true
		end := off + int64(len(e.Data))
		b = appendEntry(b, e, off, end)
		off = end
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	if len(b)-8 > maxHeader {
		return nil, fileErrorf("want a header of at most %d bytes, got %d", maxHeader, len(b)-8)
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b, nil
}

func checkEntry(e *Entry) error {
	switch {
	case e.Name == metadataKey || !utf8.ValidString(e.Name):
		return fileErrorf("a tensor cannot be named %.64q", e.Name)
	case e.Desc.DType.fileName() == "":
		return fileErrorf("tensor %.64q: the format has no type %s", e.Name, e.Desc.DType)
	case e.Desc.Rank() < 1 || e.Desc.Rank() > MaxRank:
		return fileErrorf("tensor %.64q: want rank 1 to %d, got %d", e.Name, MaxRank, e.Desc.Rank())
	case e.Scalar && e.Desc.Shape != ShapeOf(1):
		return fileErrorf("tensor %.64q: want shape [1] for a scalar, got %s", e.Name, e.Desc.Shape)
	}
	if want := storedBytes(e); want != int64(len(e.Data)) {
		if want < 0 {
			return fileErrorf("tensor %.64q: %s has no size", e.Name, e.Desc)
		}
		return fileErrorf("tensor %.64q: want %d bytes for %s, got %d", e.Name, want, e.Desc, len(e.Data))
	}
	return nil
}

func appendMetadata(b []byte, metadata map[string]string) ([]byte, error) {
	if len(metadata) == 0 {
		return b, nil
	}
	b = appendString(b, metadataKey)
	b = append(b, ':', '{')
	for i, key := range slices.Sorted(maps.Keys(metadata)) {
		if !utf8.ValidString(key) || !utf8.ValidString(metadata[key]) {
			return nil, fileErrorf("metadata %.64q is not UTF-8", key)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, key), ':')
		b = appendString(b, metadata[key])
	}
	return append(b, '}'), nil
}

func appendEntry(b []byte, e *Entry, begin, end int64) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = appendString(b, e.Name)
	b = append(b, `:{"dtype":"`...)
	b = append(b, e.Desc.DType.fileName()...)
	b = append(b, `","shape":`...)
	if e.Scalar {
		b = append(b, "[]"...)
	} else {
		b = append(b, e.Desc.Shape.String()...)
	}
	b = append(b, `,"data_offsets":[`...)
	b = append(strconv.AppendInt(b, begin, 10), ',')
	b = strconv.AppendInt(b, end, 10)
	return append(b, "]}"...)
}

// appendString adds s as JSON; s is UTF-8, so it cannot fail.
func appendString(b []byte, s string) []byte {
	quoted, _ := json.Marshal(s)
	return append(b, quoted...)
}
