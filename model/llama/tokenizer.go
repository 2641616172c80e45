package llama

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Ids of the tokens that mark the start and the end of a text.
const (
	BOS = 1
	EOS = 2
)

// byteTokens is the id of the token of byte 0; the other bytes follow.
const byteTokens = 3

// Tokenizer turns text into tokens by byte-pair merging. It is immutable.
type Tokenizer struct {
	pieces []string
	scores []float32
	ids    map[string]int32
}

// LoadTokenizer reads a tokenizer in the format of llama2.c: an int32 with the
// longest token's length, then for each of vocab tokens a float32 score, an
// int32 length and the bytes. Bytes after the last token are an error: the
// tokenizer belongs to another model then.
func LoadTokenizer(path string, vocab int) (*Tokenizer, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTokenizer(b, vocab)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parseTokenizer(b []byte, vocab int) (*Tokenizer, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("tokenizer: want 4 bytes for the longest length, got %d", len(b))
	}
	longest := int(int32(binary.LittleEndian.Uint32(b)))
	if longest < 0 || longest > len(b) {
		return nil, fmt.Errorf("tokenizer: want a longest token of at most the file's %d bytes, got %d", len(b), longest)
	}
	b = b[4:]
	t := &Tokenizer{ids: map[string]int32{}}
	for i := range vocab {
		if len(b) < 8 {
			return nil, fmt.Errorf("tokenizer: truncated at token %d of %d", i, vocab)
		}
		score := math.Float32frombits(binary.LittleEndian.Uint32(b))
		n := int(int32(binary.LittleEndian.Uint32(b[4:])))
		b = b[8:]
		switch {
		case math.IsNaN(float64(score)):
			return nil, fmt.Errorf("tokenizer: token %d has a score that is no number", i)
		case n < 0 || n > longest || n > len(b):
			return nil, fmt.Errorf("tokenizer: token %d has %d bytes, %d are left and the longest has %d", i, n, len(b), longest)
		}
		piece := string(b[:n])
		b = b[n:]
		t.pieces, t.scores = append(t.pieces, piece), append(t.scores, score)
		if _, ok := t.ids[piece]; !ok {
			t.ids[piece] = int32(i)
		}
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("tokenizer: %d bytes after the last of %d tokens", len(b), vocab)
	}
	return t, nil
}

// Encode returns the tokens of a text behind a BOS. A blank goes before the
// text; each character starts as its token or, where it has none, as the tokens
// of its bytes; then the neighbours whose joint token has the best score, the
// leftmost among equals, are joined until none are left. A byte without a token
// is an error.
func (t *Tokenizer) Encode(text string) ([]int32, error) {
	if t == nil {
		return nil, fmt.Errorf("tokenizer: it is nil: make one with LoadTokenizer")
	}
	ids := []int32{BOS}
	if text == "" {
		return ids, nil
	}
	text = " " + text
	for len(text) > 0 {
		_, size := utf8.DecodeRuneInString(text)
		char := text[:size]
		text = text[size:]
		if id, ok := t.ids[char]; ok {
			ids = append(ids, id)
			continue
		}
		for _, b := range []byte(char) {
			id := byteTokens + int32(b)
			if int(id) >= len(t.pieces) {
				return nil, fmt.Errorf("tokenizer: a vocabulary of %d has no token for byte %#02x", len(t.pieces), b)
			}
			ids = append(ids, id)
		}
	}
	return append(ids[:1], t.merge(ids[1:])...), nil
}

// Decode returns the text of tokens. BOS, EOS and ids outside the vocabulary
// have none; a token that follows a BOS loses its leading blank, which Encode
// has put there.
func (t *Tokenizer) Decode(ids []int32) string {
	if t == nil {
		return ""
	}
	var s strings.Builder
	for i, id := range ids {
		if id == BOS || id == EOS || id < 0 || int(id) >= len(t.pieces) {
			continue
		}
		piece := t.pieces[id]
		if i > 0 && ids[i-1] == BOS {
			piece = strings.TrimPrefix(piece, " ")
		}
		if b, ok := rawByte(piece); ok {
			piece = string([]byte{b})
		}
		s.WriteString(piece)
	}
	return s.String()
}

// rawByte reads a token of the form <0x0A>.
func rawByte(piece string) (byte, bool) {
	if len(piece) != 6 || !strings.HasPrefix(piece, "<0x") || piece[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(piece[3:5], 16, 8)
	return byte(b), err == nil
}
