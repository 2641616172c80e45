package tensor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// metadataKey is the name in a header that is no tensor.
const metadataKey = "__metadata__"

// fileRange is where a header puts an entry, in bytes from the header's end.
type fileRange struct{ begin, end int64 }

// parseHeader reads a header whose file has size bytes after it. The entries
// come in the order of their data, which they cover without gap or overlap.
func parseHeader(raw []byte, size int64) (*File, error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, fileErrorf("want a header that begins with {, got %.16q", raw)
	}
	if !utf8.Valid(raw) {
		return nil, fileErrorf("the header is not UTF-8")
	}
	r := headerReader{dec: json.NewDecoder(bytes.NewReader(raw)), metadata: map[string]string{}}
	r.dec.UseNumber()
	if err := r.object(r.headerField); err != nil {
		return nil, fileErrorf("header: %w", err)
	}
	if rest := bytes.TrimRight(raw[r.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, fileErrorf("want only blanks after the header's object, got %.16q", rest)
	}
	return r.file(size)
}

// file orders the entries and checks that they cover size bytes.
func (r *headerReader) file(size int64) (*File, error) {
	slices.SortStableFunc(r.placed, func(a, b placedEntry) int {
		return cmp.Or(cmp.Compare(a.at.begin, b.at.begin), cmp.Compare(a.at.end, b.at.end))
	})
	f := &File{entries: make([]Entry, len(r.placed)), index: make(map[string]int, len(r.placed)), metadata: r.metadata}
	used := int64(0)
	for i := range r.placed {
		p := &r.placed[i]
		switch {
		case p.at.end > size:
			return nil, fileErrorf("tensor %.64q: want data within %d bytes, got [%d,%d]", p.Name, size, p.at.begin, p.at.end)
		case p.at.begin < used:
			return nil, fileErrorf("tensor %.64q: data at [%d,%d] overlap those of %.64q", p.Name, p.at.begin, p.at.end, r.placed[i-1].Name)
		case p.at.begin > used:
			return nil, fileErrorf("tensor %.64q: the bytes [%d,%d] before it belong to no tensor", p.Name, used, p.at.begin)
		}
		used = p.at.end
		f.entries[i] = p.Entry
		f.index[p.Name] = i
	}
	if used != size {
		return nil, fileErrorf("want %d bytes of data, got %d", used, size)
	}
	return f, nil
}

// headerReader reads a header token by token, since decoding into a map would
// accept repeated names and fields.
type headerReader struct {
	dec      *json.Decoder
	placed   []placedEntry
	metadata map[string]string
}

type placedEntry struct {
	Entry
	at fileRange
}

// object reads {"key": value, ...}; value reads one value.
func (r *headerReader) object(value func(key string) error) error {
	if err := r.delim('{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for r.dec.More() {
		key, err := r.text()
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("%.64q appears twice", key)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return fmt.Errorf("%.64q: %w", key, err)
		}
	}
	return r.delim('}')
}

func (r *headerReader) headerField(name string) error {
	if name == metadataKey {
		return r.object(func(key string) (err error) {
			r.metadata[key], err = r.text()
			return err
		})
	}
	p := placedEntry{Entry: Entry{Name: name}}
	fields := 0
	err := r.object(func(key string) error {
		fields++
		return r.entryField(&p, key)
	})
	if err != nil {
		return err
	}
	if fields != 3 {
		return fmt.Errorf("want dtype, shape and data_offsets, got %d of them", fields)
	}
	if p.at.begin > p.at.end {
		return fmt.Errorf("want data_offsets in order, got [%d,%d]", p.at.begin, p.at.end)
	}
	if want, got := storedBytes(&p.Entry), p.at.end-p.at.begin; want != got {
		if want < 0 {
			return fmt.Errorf("the size of %s leaves int64", p.Desc)
		}
		return fmt.Errorf("want %d bytes for %s, got %d", want, p.Desc, got)
	}
	r.placed = append(r.placed, p)
	return nil
}

func (r *headerReader) entryField(p *placedEntry, key string) error {
	switch key {
	case "dtype":
		name, err := r.text()
		if err != nil {
			return err
		}
		t, ok := dtypeFromFile(name)
		if !ok {
			return fmt.Errorf("unknown type %.64q", name)
		}
		p.Desc.DType = t
		return nil
	case "shape":
		dims, err := r.integers(MaxRank)
		if err != nil {
			return err
		}
		if p.Scalar = len(dims) == 0; p.Scalar {
			dims = []int64{1}
		}
		p.Desc.Shape = ShapeOf(dims...)
		return nil
	case "data_offsets":
		at, err := r.integers(2)
		if err != nil {
			return err
		}
		if len(at) != 2 {
			return fmt.Errorf("want 2 integers, got %d", len(at))
		}
		p.at = fileRange{at[0], at[1]}
		return nil
	}
	return fmt.Errorf("unknown field")
}

// integers reads an array of at most limit integers, none negative.
func (r *headerReader) integers(limit int) ([]int64, error) {
	if err := r.delim('['); err != nil {
		return nil, err
	}
	var out []int64
	for r.dec.More() {
		if len(out) == limit {
			return nil, fmt.Errorf("want at most %d integers", limit)
		}
		tok, err := r.token()
		if err != nil {
			return nil, err
		}
		n, ok := tok.(json.Number)
		if !ok {
			return nil, fmt.Errorf("want an integer, got %.64v", tok)
		}
		v, err := strconv.ParseInt(string(n), 10, 64)
		if err != nil || v < 0 {
			return nil, fmt.Errorf("want an integer from 0 to 2^63-1, got %.64s", n)
		}
		out = append(out, v)
	}
	return out, r.delim(']')
}

func (r *headerReader) text() (string, error) {
	tok, err := r.token()
	if err != nil {
		return "", err
	}
	s, ok := tok.(string)
	if !ok {
		return "", fmt.Errorf("want a string, got %.64v", tok)
	}
	return s, nil
}

func (r *headerReader) delim(want json.Delim) error {
	tok, err := r.token()
	if err != nil {
		return err
	}
	if tok != want {
		return fmt.Errorf("want %s, got %.64v", want, tok)
	}
	return nil
}

func (r *headerReader) token() (json.Token, error) {
	tok, err := r.dec.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return tok, err
}
