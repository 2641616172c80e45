package compiled

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"goatb/status"
	"goatb/tiling/sink"
)

// magic begins every file, Version is that of the format.
const (
	magic   = "GoATBcmp"
	Version = 1
)

// Places in the header.
const (
	versionAt = 8
	lengthAt  = 16
	sumAt     = 24
	bodyAt    = sumAt + sha256.Size
)

// Encode writes the file's bytes. Equal files give equal bytes.
func (f *File) Encode() ([]byte, error) {
	body, err := json.Marshal(f)
	if err != nil {
		return nil, status.Errorf(status.ErrInternal, "compiled graph: %w", err)
	}
	return seal(body), nil
}

// seal puts a header before a body.
func seal(body []byte) []byte {
	out := make([]byte, bodyAt, bodyAt+len(body))
	copy(out, magic)
	binary.LittleEndian.PutUint32(out[versionAt:], Version)
	binary.LittleEndian.PutUint64(out[lengthAt:], uint64(len(body)))
	out = append(out, body...)
	copy(out[sumAt:], checksum(out))
	return out
}

// checksum is that of a file, over all but its own place.
func checksum(data []byte) []byte {
	h := sha256.New()
	h.Write(data[:sumAt])
	h.Write(data[bodyAt:])
	return h.Sum(nil)
}

// Decode reads the bytes of a file, which it does not keep. Errors are
// ErrInvalidParam: Foreign for bytes that do not begin as a file, OtherVersion for
// another format, Damaged for anything else that Encode does not write, be it one
// bit.
func Decode(data []byte) (*File, error) {
	f, err := decode(data)
	if err != nil {
		return nil, status.Place(err, status.ErrInvalidParam, "compiled graph", "read", "")
	}
	return f, nil
}

func decode(data []byte) (*File, error) {
	body, err := open(data)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var f File
	if err := d.Decode(&f); err != nil {
		return nil, damaged("%w", err)
	}
	if d.InputOffset() != int64(len(body)) {
		return nil, damaged("%d bytes behind its end", int64(len(body))-d.InputOffset())
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	f.alignTilings()
	return &f, nil
}

// open checks the header and returns the body.
func open(data []byte) ([]byte, error) {
	if n := min(len(data), len(magic)); string(data[:n]) != magic[:n] || n == 0 {
		return nil, status.Errorf(status.ErrInvalidParam, "%w: want a file of atb compile", Foreign)
	}
	if len(data) < bodyAt {
		return nil, damaged("want a header of %d bytes, got %d; copy the file again", bodyAt, len(data))
	}
	if v := binary.LittleEndian.Uint32(data[versionAt:]); v != Version {
		return nil, status.Errorf(status.ErrInvalidParam, "%w: want format %d, got %d; compile it again with this program", OtherVersion, Version, v)
	}
	if want, got := binary.LittleEndian.Uint64(data[lengthAt:]), uint64(len(data)-bodyAt); want != got {
		return nil, damaged("want %d bytes behind the header, got %d; copy the file again", want, got)
	}
	if want, got := data[sumAt:bodyAt], checksum(data); !bytes.Equal(want, got) {
		return nil, damaged("want the checksum %x, got %x; copy the file again", want, got)
	}
	return data[bodyAt:], nil
}

// damaged is the error of a file that is not as it was written.
func damaged(format string, args ...any) error {
	return status.Errorf(status.ErrInvalidParam, "%w: %w", Damaged, fmt.Errorf(format, args...))
}

// alignTilings moves tilings to memory that kernels can read.
func (f *File) alignTilings() {
	for _, u := range f.Units {
		for _, b := range u.Before {
			if b != nil {
				m := sink.TilingBytes(len(b.Data))
				copy(m, b.Data)
				b.Data = m
			}
		}
	}
}
