package argsformat

import (
	"math"
	"strconv"
	"strings"

	"goatb/status"
)

// Parse reads a format. Errors are ErrInvalidParam and name the byte position,
// from 0, and the item. The empty text is the empty format.
func Parse(text string) (Format, error) {
	var f Format
	for at := 0; at < len(text); {
		if text[at] != '{' {
			return nil, syntax(at, "want {, got %q", clip(text[at:]))
		}
		n := strings.IndexAny(text[at+1:], "{}")
		if n < 0 || text[at+1+n] == '{' {
			return nil, syntax(at, "item %q: want } at its end", clip(text[at:]))
		}
		it, err := parseItem(text[at+1:at+1+n], at+1)
		if err != nil {
			return nil, err
		}
		f = append(f, it)
		at += n + 2
	}
	return f, nil
}

func syntax(at int, format string, args ...any) error {
	return status.Errorf(status.ErrInvalidParam, "args format: position %d: "+format, append([]any{at}, args...)...)
}

// clip shortens what an error quotes.
func clip(s string) string {
	if len(s) > 32 {
		return s[:32] + "..."
	}
	return s
}

// scanner reads one item.
type scanner struct {
	item string
	rest string
	// at is the position of rest in the format.
	at int
}

func (s *scanner) fail(want string) error {
	got := "the end"
	if s.rest != "" {
		got = strconv.Quote(clip(s.rest))
	}
	return syntax(s.at, "item %q: want %s, got %s", clip(s.item), want, got)
}

func (s *scanner) skip(n int) { s.rest, s.at = s.rest[n:], s.at+n }

func parseItem(text string, at int) (Item, error) {
	s := scanner{item: text, rest: text, at: at}
	it, err := s.subNode()
	if err != nil {
		return Item{}, err
	}
	for i := range words {
		w := &words[i]
		if !strings.HasPrefix(s.rest, w.name) || w.name == "" && s.rest != "" {
			continue
		}
		s.skip(len(w.name))
		it.Kind, it.Part = w.kind, w.part
		if err := s.tail(&it, w.shape); err != nil {
			return Item{}, err
		}
		if s.rest != "" {
			return Item{}, s.fail("the end of the item")
		}
		return it, nil
	}
	return Item{}, s.fail("a known item")
}

// subNode reads "skn<ID>" where the item begins with it.
func (s *scanner) subNode() (it Item, err error) {
	if !strings.HasPrefix(s.rest, "skn") {
		return it, nil
	}
	s.skip(len("skn"))
	id, err := s.number(math.MaxInt64, "the number of a sub node")
	return Item{InSubNode: true, SubNode: int64(id)}, err
}

// tail reads what follows the name.
func (s *scanner) tail(it *Item, sh shape) (err error) {
	var n uint64
	switch sh {
	case bare:
		return nil
	case valued:
		it.Value, err = s.number(widest(it.Part), "a number")
		return err
	case indexedOrAll:
		if s.rest == "*" {
			s.skip(1)
			it.Index = All
			return nil
		}
		fallthrough
	default:
		n, err = s.number(math.MaxInt32, "an index")
	}
	if err != nil {
		return err
	}
	it.Index = int32(n)
	if strings.HasPrefix(s.rest, "*") {
		s.skip(1)
		return nil
	}
	it.Folded = sh != starred
	return nil
}

// widest is the largest literal of a width.
func widest(p Part) uint64 {
	if p == Bits32 {
		return math.MaxUint32
	}
	return math.MaxUint64
}

// number reads a decimal number of at most `limit`.
func (s *scanner) number(limit uint64, what string) (uint64, error) {
	n := 0
	for n < len(s.rest) && '0' <= s.rest[n] && s.rest[n] <= '9' {
		n++
	}
	switch {
	case n == 0:
		return 0, s.fail(what)
	case n > 1 && s.rest[0] == '0':
		return 0, s.fail(what + " without leading zeros")
	}
	v, err := strconv.ParseUint(s.rest[:n], 10, 64)
	if err != nil || v > limit {
		return 0, s.fail(what + " of at most " + strconv.FormatUint(limit, 10))
	}
	s.skip(n)
	return v, nil
}
