package llama

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
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
	ids    map[string]int
}

// LoadTokenizer reads a tokenizer in the format of llama2.c: an int32 with the
// longest token's length, then for each of vocab tokens a float32 score, an
// int32 length and the bytes.
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
	b = b[4:]
	t := &Tokenizer{ids: map[string]int{}}
	for i := range vocab {
		if len(b) < 8 {
			return nil, fmt.Errorf("tokenizer: truncated at token %d of %d", i, vocab)
		}
		score := math.Float32frombits(binary.LittleEndian.Uint32(b))
		n := int(int32(binary.LittleEndian.Uint32(b[4:])))
		b = b[8:]
		if n < 0 || n > len(b) {
			return nil, fmt.Errorf("tokenizer: token %d has %d bytes, %d are left", i, n, len(b))
		}
		piece := string(b[:n])
		b = b[n:]
		t.pieces, t.scores = append(t.pieces, piece), append(t.scores, score)
		if _, ok := t.ids[piece]; !ok {
			t.ids[piece] = i
		}
	}
	return t, nil
}

// Encode returns the tokens of a text behind a BOS.
func (t *Tokenizer) Encode(text string) []int32 {
	ids := []int32{BOS}
	if text == "" {
		return ids
	}
	var parts []int
	for _, r := range " " + text {
		if id, ok := t.ids[string(r)]; ok {
			parts = append(parts, id)
			continue
		}
		for _, b := range []byte(string(r)) {
			parts = append(parts, byteTokens+int(b))
		}
	}
	for t.mergeBest(&parts) {
	}
	for _, id := range parts {
		ids = append(ids, int32(min(id, len(t.pieces)-1)))
	}
	return ids
}

// mergeBest joins the neighbouring pair whose joint token has the best score.
func (t *Tokenizer) mergeBest(parts *[]int) bool {
	p := *parts
	best, at, id := float32(math.Inf(-1)), -1, 0
	for i := 0; i+1 < len(p); i++ {
		if p[i] >= len(t.pieces) || p[i+1] >= len(t.pieces) {
			continue
		}
		if j, ok := t.ids[t.pieces[p[i]]+t.pieces[p[i+1]]]; ok && t.scores[j] > best {
			best, at, id = t.scores[j], i, j
		}
	}
	if at < 0 {
		return false
	}
	p[at] = id
	*parts = append(p[:at+1], p[at+2:]...)
	return true
}

// Decode returns the text of tokens: BOS and EOS are left out, and so is the
// blank that begins the first word after a BOS.
func (t *Tokenizer) Decode(ids []int32) string {
	var s strings.Builder
	first := true
	for _, id := range ids {
		if id == BOS || id == EOS || id < 0 || int(id) >= len(t.pieces) {
			continue
		}
		piece := t.pieces[id]
		if b, ok := rawByte(piece); ok {
			piece = string([]byte{b})
		}
		if first {
			piece = strings.TrimPrefix(piece, " ")
			first = false
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
