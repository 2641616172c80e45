package llama

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"goatb/device"
	"goatb/status"
)

// headerInts is the number of int32 at the start of a llama2.c file.
const headerInts = 7

// File is the weights of a model in a file of llama2.c's format. They stay in the
// file: Rows reads what is asked for. Its methods may be called from several
// goroutines at once, Close after all of them.
//
// The format: seven int32 (dim, hidden, layers, heads, kv heads, vocab, max seq; a
// negative vocab means a classifier of its own), then float32 tensors, each for all
// layers in turn.
type File struct {
	config Config
	from   io.ReaderAt
	closer io.Closer
	// at is where the tensors begin in the file, in bytes.
	at [tensors]int64
}

// OpenFile opens a model. A file that is not exactly as long as its header says is
// an error.
func OpenFile(path string) (*File, error) {
	o, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := o.Stat()
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	f, err := newFile(o, info.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), o.Close())
	}
	f.closer = o
	return f, nil
}

// newFile reads the header of a file of so many bytes.
func newFile(from io.ReaderAt, size int64) (*File, error) {
	if size < headerInts*4 {
		return nil, fmt.Errorf("model file: want a header of %d bytes, got %d", headerInts*4, size)
	}
	var h [headerInts]int32
	if err := binary.Read(io.NewSectionReader(from, 0, headerInts*4), binary.LittleEndian, h[:]); err != nil {
		return nil, fmt.Errorf("model file: header: %w", err)
	}
	c := Config{Dim: int(h[0]), Hidden: int(h[1]), Layers: int(h[2]), Heads: int(h[3]), KVHeads: int(h[4]), Vocab: int(h[5]), MaxSeq: int(h[6]),
		Epsilon: 1e-5, RopeBase: 10000, SharedClassifier: h[5] > 0}
	c.Vocab = max(c.Vocab, -c.Vocab)
	if err := c.Validate(); err != nil {
		return nil, err
	}
	n, err := c.floats()
	if err != nil {
		return nil, err
	}
	if want := 4 * (headerInts + n); size != want {
		return nil, fmt.Errorf("model file: a header of dim %d, hidden %d, %d layers, vocab %d and max_seq %d wants %d bytes, got %d",
			c.Dim, c.Hidden, c.Layers, c.Vocab, c.MaxSeq, want, size)
	}
	f := &File{config: c, from: from}
	f.place()
	return f, nil
}

// place finds where the tensors begin.
func (f *File) place() {
	c, at := &f.config, int64(headerInts*4)
	_ = c.each(func(t Tensor, layer int) error {
		if t == Classifier {
			at += 4 * int64(c.MaxSeq) * int64(c.HeadDim()) // frequencies of the rotary embedding, which ropeTables computes
		}
		if layer == 0 {
			f.at[t] = at
		}
		rows, cols := c.Size(t)
		at += 4 * int64(rows) * int64(cols)
		return nil
	})
	if c.SharedClassifier {
		f.at[Classifier] = f.at[Embedding]
	}
}

// Model returns the shape of the model.
func (f *File) Model() Config {
	if f == nil {
		return Config{}
	}
	return f.config
}

// Rows reads rows of a tensor. Errors: a tensor or rows that there are not, and
// those of reading.
func (f *File) Rows(dst []float32, t Tensor, layer, from int) error {
	if f == nil || f.from == nil {
		return status.Unmade(status.ErrInvalidParam, "File", f == nil, "open one with OpenFile or OpenDir")
	}
	if err := f.config.wantRows(t, layer, from, len(dst)); err != nil {
		return err
	}
	rows, cols := f.config.Size(t)
	at := f.at[t] + 4*(int64(layer)*int64(rows)+int64(from))*int64(cols)
	if _, err := f.from.ReadAt(device.BytesOf(dst), at); err != nil {
		return fmt.Errorf("model file: tensor %d of layer %d: %w", t, layer, err)
	}
	return nil
}

// Close closes the file.
func (f *File) Close() error {
	if f == nil || f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// LoadFile reads a whole model as OpenFile opens it.
func LoadFile(path string) (*Weights, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	w, err := readAll(f)
	return w, errors.Join(err, f.Close())
}

// OpenDir opens the model of a folder, which is the one *.bin file that is not a
// tokenizer (tok*.bin), and reads the tokenizer.
func OpenDir(dir string) (*File, *Tokenizer, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("model folder: %w", err)
	}
	var model, tok string
	for _, f := range files {
		name := f.Name()
		if f.IsDir() || filepath.Ext(name) != ".bin" {
			continue
		}
		isTok, _ := filepath.Match("tok*.bin", name)
		switch {
		case isTok && tok == "":
			tok = filepath.Join(dir, name)
		case !isTok && model == "":
			model = filepath.Join(dir, name)
		default:
			return nil, nil, fmt.Errorf("model folder %s: want one model and one tokenizer, found another file %s", dir, name)
		}
	}
	if model == "" || tok == "" {
		return nil, nil, fmt.Errorf("model folder %s: want a *.bin model and a tok*.bin tokenizer", dir)
	}
	f, err := OpenFile(model)
	if err != nil {
		return nil, nil, err
	}
	t, err := LoadTokenizer(tok, f.config.Vocab)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, t, nil
}

// LoadDir reads a whole model and its tokenizer as OpenDir opens them.
func LoadDir(dir string) (*Weights, *Tokenizer, error) {
	f, t, err := OpenDir(dir)
	if err != nil {
		return nil, nil, err
	}
	w, err := readAll(f)
	return w, t, errors.Join(err, f.Close())
}
