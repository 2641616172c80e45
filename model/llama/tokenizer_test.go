package llama

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tokenFile writes a tokenizer in the format of llama2.c.
func tokenFile(longest int32, pieces []string, scores []float32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(longest))
	for i, p := range pieces {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scores[i]))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

// bytePieces are the first 259 tokens of every vocabulary: three marks and the
// bytes.
func bytePieces() (pieces []string, scores []float32) {
	pieces = []string{"<unk>", "\n<s>\n", "\n</s>\n"}
	for i := range 256 {
		pieces = append(pieces, "<0x"+string("0123456789ABCDEF"[i>>4])+string("0123456789ABCDEF"[i&15])+">")
	}
	return pieces, make([]float32, len(pieces))
}

// tokenizerOf makes a tokenizer of the byte tokens and those given, from id 259.
func tokenizerOf(t *testing.T, more []string, scores []float32) *Tokenizer {
	t.Helper()
	p, s := bytePieces()
	p, s = append(p, more...), append(s, scores...)
	tok, err := parseTokenizer(tokenFile(7, p, s), len(p))
	require.NoError(t, err)
	return tok
}

func TestEncodeMergesBestFirst(t *testing.T) {
	tok := tokenizerOf(t, []string{" ", "a", "b", "ab", "ba", " a", "aa", "aab", "é"}, []float32{-1, -2, -3, -5, -4, -9, -6, -7, -8})
	const blank, a, b, ab, ba, blankA, aa, aab, eAcute = 259, 260, 261, 262, 263, 264, 265, 266, 267
	for _, c := range []struct {
		text string
		want []int32
	}{
		{"", []int32{BOS}},
		{"b", []int32{BOS, blank, b}},
		{"a", []int32{BOS, blankA}},
		{"ab", []int32{BOS, blank, ab}},     // ab before " a"
		{"aba", []int32{BOS, blankA, ba}},   // ba is better than ab
		{"aaa", []int32{BOS, blank, aa, a}}, // the leftmost of equals
		{"aab", []int32{BOS, blank, aab}},   // of a and ab
		{"bé", []int32{BOS, blank, b, eAcute}},
		{"ü", []int32{BOS, blank, byteTokens + 0xc3, byteTokens + 0xbc}},
		{"\xffb", []int32{BOS, blank, byteTokens + 0xff, b}}, // not UTF-8
	} {
		got, err := tok.Encode(c.text)
		require.NoError(t, err)
		assert.Equal(t, c.want, got, "%q", c.text)
		assert.Equal(t, c.text, tok.Decode(got))
	}
}

func TestEncodeWantsByteTokens(t *testing.T) {
	p, s := bytePieces()
	tok, err := parseTokenizer(tokenFile(7, p[:100], s[:100]), 100)
	require.NoError(t, err)
	_, err = tok.Encode("~")
	require.ErrorContains(t, err, "no token for byte 0x7e")
}

func TestDecode(t *testing.T) {
	tok := tokenizerOf(t, []string{" a", "b"}, []float32{-1, -2})
	assert.Equal(t, "a a", tok.Decode([]int32{BOS, 259, 259}), "the blank behind a BOS goes")
	assert.Equal(t, " ab", tok.Decode([]int32{259, 260}), "no BOS, the blank stays")
	assert.Equal(t, "bb", tok.Decode([]int32{260, EOS, -1, 100000, 260}), "marks and unknown ids have no text")
	assert.Equal(t, "\n\xc3\xbc", tok.Decode([]int32{byteTokens + '\n', byteTokens + 0xc3, byteTokens + 0xbc}))
}

func TestParseTokenizerRefuses(t *testing.T) {
	p, s := bytePieces()
	good := tokenFile(7, p, s)
	for n := range len(good) {
		_, err := parseTokenizer(good[:n], len(p))
		require.Error(t, err, "cut to %d bytes", n)
	}
	at := func(b []byte, off int, v uint32) []byte {
		b = bytes.Clone(b)
		binary.LittleEndian.PutUint32(b[off:], v)
		return b
	}
	for name, b := range map[string][]byte{
		"a longer file":             append(bytes.Clone(good), 0),
		"a token above the longest": at(good, 0, 4),
		"no longest":                at(good, 0, 0),
		"a negative length":         at(good, 8, math.MaxUint32),
		"a huge length":             at(good, 8, math.MaxInt32),
		"a score that is no number": at(good, 4, math.Float32bits(float32(math.NaN()))),
	} {
		_, err := parseTokenizer(b, len(p))
		assert.ErrorContains(t, err, "tokenizer: ", name)
	}
	_, err := parseTokenizer(good, len(p)-1)
	assert.ErrorContains(t, err, "after the last")
	_, err = LoadTokenizer(filepath.Join(t.TempDir(), "none"), 1)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// plainEncode is byte-pair merging over strings, without any bookkeeping.
func plainEncode(tok *Tokenizer, text string) []int32 {
	id := func(s string) int {
		for i, p := range tok.pieces {
			if p == s {
				return i
			}
		}
		return -1
	}
	var parts []int
	for _, r := range " " + text {
		if i := id(string(r)); i >= 0 {
			parts = append(parts, i)
			continue
		}
		for _, b := range []byte(string(r)) {
			parts = append(parts, byteTokens+int(b))
		}
	}
	for {
		best, at, to := float32(-1e10), -1, 0
		for i := range len(parts) - 1 {
			if j := id(tok.pieces[parts[i]] + tok.pieces[parts[i+1]]); j >= 0 && tok.scores[j] > best {
				best, at, to = tok.scores[j], i, j
			}
		}
		if at < 0 {
			break
		}
		parts = append(append(append([]int(nil), parts[:at]...), to), parts[at+2:]...)
	}
	ids := []int32{BOS}
	for _, p := range parts {
		ids = append(ids, int32(p))
	}
	return ids
}

func TestEncodeOfARealVocabulary(t *testing.T) {
	dir := "../../../shared/models/stories260K"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the shared test data is absent: %v", err)
	}
	_, tok, err := LoadDir(dir)
	require.NoError(t, err)
	got, err := tok.Encode("Once upon a time")
	require.NoError(t, err)
	require.Equal(t, []int32{BOS, 403, 407, 261, 378}, got)
	rng := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("Once upon a time there was little girl named Lily she loved to play outside in the park. \n \"No,\" said Zoë; 日本 <0x0A> :-)")
	for range 40 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(words[rng.IntN(len(words))])
			b.WriteString([]string{" ", "  ", "\n", ""}[rng.IntN(4)])
		}
		ids, err := tok.Encode(b.String())
		require.NoError(t, err)
		if b.Len() > 0 {
			require.Equal(t, plainEncode(tok, b.String()), ids, "%q", b.String())
		}
		require.Equal(t, b.String(), tok.Decode(ids))
	}
}

// TestEncodeOfLongTexts encodes random text of few letters, where pairs overlap
// and change much, as the plain merging does; and a text of a quarter million
// bytes, which merging by search among all pairs would not end.
func TestEncodeOfLongTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	pieces := []string{" ", "a", "b"}
	for _, n := range []int{2, 3, 4, 6} {
		for i := range 1 << n {
			b := make([]byte, n)
			for j := range b {
				b[j] = "ab"[i>>j&1]
			}
			pieces = append(pieces, string(b))
		}
	}
	scores := make([]float32, len(pieces))
	for i := range scores {
		scores[i] = float32(rng.IntN(20)) // many equals
	}
	tok := tokenizerOf(t, pieces, scores)
	letters := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "ab"[rng.IntN(2)]
		}
		return string(b)
	}
	for range 200 {
		text := letters(1 + rng.IntN(60))
		got, err := tok.Encode(text)
		require.NoError(t, err)
		require.Equal(t, plainEncode(tok, text), got, text)
	}
	long := letters(1 << 18)
	got, err := tok.Encode(long)
	require.NoError(t, err)
	require.Less(t, len(got), 1<<17)
	require.Equal(t, long, tok.Decode(got))
}

func FuzzParseTokenizer(f *testing.F) {
	p, s := bytePieces()
	f.Add(tokenFile(7, p, s), len(p), "text")
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'x'}, 1, "x")
	f.Fuzz(func(t *testing.T, b []byte, vocab int, text string) {
		tok, err := parseTokenizer(b, vocab)
		if err != nil {
			return
		}
		require.Len(t, tok.pieces, max(vocab, 0))
		ids, err := tok.Encode(text)
		if err == nil {
			tok.Decode(ids)
		}
	})
}
