package strictjson

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// doc is a type for these tests.
type doc struct {
	Name  string            `json:"name"`
	Items []*item           `json:"items"`
	ByKey map[string]item   `json:"byKey"`
	Raw   json.RawMessage   `json:"raw"`
	Text  map[string]string `json:"text,omitempty"`
	Plain int
	Gone  int `json:"-"`
	inner int
}

type item struct {
	Size  int64 `json:"size"`
	Shape struct {
		Dims []int `json:"dims"`
	} `json:"shape"`
}

func TestDecode(t *testing.T) {
	var d doc
	require.NoError(t, Decode([]byte(`{"name":"a","items":[{"size":1,"shape":{"dims":[1,2]}},null],"byKey":{"any":{"size":2}},
		"raw":{"x":[{"y":1}]},"text":{"k":"v"},"Plain":3}`), &d))
	assert.Equal(t, int64(1), d.Items[0].Size)
	assert.Equal(t, int64(2), d.ByKey["any"].Size)
	assert.Equal(t, 3, d.Plain)
	assert.Zero(t, d.inner)
	require.NoError(t, Decode([]byte(`null`), &d))
}

func TestDecodeRefuses(t *testing.T) {
	for text, says := range map[string]string{
		``:                              "unexpected end",
		`{"name":1}`:                    "cannot unmarshal number",
		`{"name":"a"} {}`:               "more than one value",
		`{"name":"a",}`:                 "invalid character",
		`{"name":"a"`:                   "unexpected end",
		`[]`:                            "cannot unmarshal array",
		`{"Name":"a"}`:                  `unknown key "Name": want one of "name", "`,
		`{"item":[]}`:                   `unknown key "item": want one of "items", "`,
		`{"items":[{},{"sise":1}]}`:     `unknown key "items[1].sise": want one of "size", "shape"`,
		`{"byKey":{"x":{"dims":[1]}}}`:  `unknown key "byKey.x.dims": want one of "`,
		`{"items":[{"shape":{"d":1}}]}`: `unknown key "items[0].shape.d": want one of "dims"`,
		`{"Gone":1}`:                    `unknown key "Gone"`,
		`{"inner":1}`:                   `unknown key "inner"`,
		`{"name":"a","name":"b"}`:       `the key "name" is there twice`,
		`{"raw":{"x":{"a":1,"a":2}}}`:   `the key "raw.x.a" is there twice`,
	} {
		var d doc
		require.ErrorContains(t, Decode([]byte(text), &d), says, text)
	}
}

func TestCheckKeysLetsTheFreeKeyPass(t *testing.T) {
	of := reflect.TypeFor[item]()
	require.NoError(t, CheckKeys([]byte(`{"rsv":[{"a":1}],"shape":{"rsv":{"b":1}}}`), of, "rsv"))
	require.ErrorContains(t, CheckKeys([]byte(`{"rsv":[]}`), of, ""), `unknown key "rsv"`)
	require.ErrorContains(t, CheckKeys([]byte(`{"dims":[]}`), of, ""), `unknown key "dims": it belongs at "shape.dims": want one of "size", "shape"`)
	require.ErrorContains(t, CheckKeys([]byte(`{"a":1}`), reflect.TypeFor[struct{}](), ""), `unknown key "a": there are no keys`)
	require.ErrorIs(t, CheckKeys(nil, of, ""), io.ErrUnexpectedEOF)
}

func TestLongKeysAreCut(t *testing.T) {
	err := Decode([]byte(`{"`+strings.Repeat("k", 1<<20)+`":1}`), &doc{})
	require.ErrorContains(t, err, "kkk\"...: want one of")
	assert.Less(t, len(err.Error()), 1000)
}
