// Package strictjson reads JSON objects with keys that mean something only:
// encoding/json lets unknown keys, keys of another case and keys given twice
// pass.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"goatb/internal/spelling"
)

// Decode reads one JSON value into to. Errors: what encoding/json reports,
// what CheckKeys reports, a second value behind the first.
func Decode(data []byte, to any) error {
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return trailing(data, err)
	}
	if err := CheckKeys(data, reflect.TypeOf(to).Elem(), ""); err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}

// trailing says that there is a second value where that is what is wrong.
func trailing(data []byte, err error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if d.Decode(new(json.RawMessage)) == nil && d.More() {
		return fmt.Errorf("more than one value")
	}
	return err
}

// CheckKeys looks at the keys of a valid JSON value that is meant for a type:
// those of objects that become structs must be names of fields, in the same
// case. No object may have a key twice. The key named free, and everything under
// it, is let pass everywhere. Values of other types are not looked at. The error
// names the key with its path and the keys there are, the nearest first.
func CheckKeys(data []byte, t reflect.Type, free string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	c := checker{d: d, free: free, root: t}
	err := c.value(t, "")
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// checker walks the tokens of a value.
type checker struct {
	d    *json.Decoder
	free string
	root reflect.Type
}

// value takes the next value, at a path, that is meant for type t; nil is a
// type whose keys are anybody's.
func (c *checker) value(t reflect.Type, path string) error {
	tok, err := c.d.Token()
	if err != nil {
		return err
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch tok {
	case json.Delim('{'):
		err = c.object(t, path)
	case json.Delim('['):
		err = c.array(t, path)
	default:
		return nil
	}
	if err == nil {
		_, err = c.d.Token() // the closing one
	}
	return err
}

func (c *checker) array(t reflect.Type, path string) error {
	var of reflect.Type
	if t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) {
		of = t.Elem()
	}
	for i := 0; c.d.More(); i++ {
		if err := c.value(of, path+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) object(t reflect.Type, path string) error {
	seen := map[string]bool{}
	for c.d.More() {
		tok, err := c.d.Token()
		if err != nil {
			return err
		}
		key := tok.(string)
		at := join(path, key)
		if seen[key] {
			return fmt.Errorf("the key %s is there twice", quoted(at))
		}
		seen[key] = true
		of, err := c.member(t, key, path)
		if err != nil {
			return err
		}
		if err := c.value(of, at); err != nil {
			return err
		}
	}
	return nil
}

// member returns the type that a key's value is meant for.
func (c *checker) member(t reflect.Type, key, path string) (reflect.Type, error) {
	switch {
	case t == nil || key == c.free && c.free != "":
		return nil, nil
	case t.Kind() == reflect.Map:
		return t.Elem(), nil
	case t.Kind() != reflect.Struct:
		return nil, nil
	}
	if f, ok := fields(t)[key]; ok {
		return f, nil
	}
	return nil, c.unknown(t, key, path)
}

// unknown is the error for a key that a struct does not have. Keys of other
// objects of the value are proposed too, where they are nearer.
func (c *checker) unknown(t reflect.Type, key, path string) error {
	known := spelling.Nearest(key, names(t))
	elsewhere := ""
	for _, p := range paths(c.root, "") {
		if last := p[strings.LastIndex(p, ".")+1:]; last == key && !slices.Contains(known, p) {
			elsewhere = p
		}
	}
	text := "unknown key " + quoted(join(path, key))
	if elsewhere != "" {
		text += fmt.Sprintf(": it belongs at %q", elsewhere)
	}
	if len(known) == 0 {
		return fmt.Errorf("%s: there are no keys", text)
	}
	return fmt.Errorf("%s: want one of %s", text, spelling.List(key, known))
}

// quoted quotes a path; of a very long one only the beginning.
func quoted(path string) string {
	const most = 100
	if len(path) > most {
		return strconv.Quote(path[:most]) + "..."
	}
	return strconv.Quote(path)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fields returns the types of a struct's fields by JSON key.
func fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}

// names lists the keys of a struct in the order of its fields.
func names(t reflect.Type) []string {
	var out []string
	known := fields(t)
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if _, ok := known[name]; ok {
			out = append(out, name)
		}
	}
	return out
}

// paths lists the keys of a struct and of the structs in it.
func paths(t reflect.Type, at string) []string {
	var out []string
	if t.Kind() != reflect.Struct {
		return nil
	}
	known := fields(t)
	for _, name := range names(t) {
		out = append(out, join(at, name))
		out = append(out, paths(known[name], join(at, name))...)
	}
	return out
}
