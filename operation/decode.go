package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"goatb/internal/strictjson"
	"goatb/status"
)

// reservedKey is the JSON key of ATB's reserved bytes, which must be zero.
const reservedKey = "rsv"

// Decode reads an operation's parameters from a JSON object with ATB's keys.
// Keys that the object does not have keep the value in def, null keeps a
// number's default and empties a list. The required keys must be there. The key
// "rsv", at any depth, must hold zeros only. Decode owns def: lists in it may be
// overwritten.
//
// Every error is ErrInvalidParam: malformed JSON, a key that P does not know (the
// case of letters counts) or that is there twice, a value of the wrong type, a
// missing key, reserved bytes that are not zero, or what P's Validate reports.
func Decode[P Spec](data []byte, def P, required ...string) (Spec, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, jsonError(err)
	}
	if top == nil {
		return nil, status.Errorf(status.ErrInvalidParam, "want a JSON object of parameters, got null")
	}
	if err := strictjson.CheckKeys(data, reflect.TypeFor[P](), reservedKey); err != nil {
		return nil, status.Errorf(status.ErrInvalidParam, "parameters: %w", err)
	}
	for _, key := range required {
		if _, ok := top[key]; !ok {
			return nil, status.Errorf(status.ErrInvalidParam, "parameter %q is missing", key)
		}
	}
	if err := checkReserved(data); err != nil {
		return nil, err
	}
	p := def
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, jsonError(err)
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

// jsonError says where and why JSON could not be read.
func jsonError(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := "parameters"
		if e.Field != "" {
			where = fmt.Sprintf("parameter %q", e.Field)
		}
		return status.Errorf(status.ErrInvalidParam, "%s: want %s, got JSON %s at byte %d", where, e.Type, e.Value, e.Offset)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return status.Errorf(status.ErrInvalidParam, "malformed JSON at byte %d: %w", e.Offset, err)
	}
	return status.Errorf(status.ErrInvalidParam, "parameters: %w", err)
}

// checkReserved looks for reserved bytes that are not zero in valid JSON.
func checkReserved(data []byte) error {
	if !bytes.Contains(data, []byte(reservedKey)) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var path nesting
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return jsonError(err)
		}
		if err := path.step(tok); err != nil {
			return err
		}
	}
}

// nesting follows the tokens of a JSON text.
type nesting struct {
	levels []level
}

// level is an open object or array.
type level struct {
	object bool
	// key is the current key of an object; wantKey says that one comes next.
	key     string
	wantKey bool
	// reserved says that everything inside belongs to a reserved key.
	reserved bool
}

// step takes the next token and checks a value that a reserved key holds.
func (n *nesting) step(tok json.Token) error {
	var in *level
	if len(n.levels) > 0 {
		in = &n.levels[len(n.levels)-1]
	}
	if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
		n.levels = n.levels[:len(n.levels)-1]
		return nil
	}
	if in != nil && in.object && in.wantKey {
		in.key, in.wantKey = tok.(string), false
		return nil
	}
	reserved := in != nil && (in.reserved || in.object && in.key == reservedKey)
	if in != nil {
		in.wantKey = in.object
	}
	if d, ok := tok.(json.Delim); ok {
		n.levels = append(n.levels, level{object: d == '{', wantKey: d == '{', reserved: reserved})
		return nil
	}
	if !reserved {
		return nil
	}
	num, ok := tok.(json.Number)
	if !ok {
		return status.Errorf(status.ErrInvalidParam, "reserved bytes %q: want numbers, got %v", reservedKey, tok)
	}
	if v, err := num.Float64(); err != nil || v != 0 {
		return status.Errorf(status.ErrInvalidParam, "reserved bytes %q: want 0, got %s", reservedKey, num)
	}
	return nil
}
