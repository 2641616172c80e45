package operation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/kernelgraph"
	"goatb/status"
	"goatb/tensor"
)

// decoded is a parameter struct for these tests.
type decoded struct {
	Axis  int64        `json:"axis"`
	Scale float32      `json:"scale"`
	List  []int64      `json:"list"`
	On    bool         `json:"on"`
	DType tensor.DType `json:"outDataType"`
	Sub   struct {
		Eps float32 `json:"eps"`
	} `json:"sub"`
}

func (decoded) Signature() Signature                     { return Signature{Name: "Decoded"} }
func (decoded) Check(*Query) error                       { return nil }
func (decoded) Infer(*Query) ([]tensor.Desc, error)      { return nil, nil }
func (decoded) Lower(*kernelgraph.Builder, *Query) error { return nil }
func (p decoded) Validate() error {
	if p.Axis < 0 {
		return status.Errorf(status.ErrInvalidParam, "want axis at least 0, got %d", p.Axis)
	}
	return nil
}

func defaultDecoded() decoded {
	d := decoded{Axis: 3, Scale: 1, List: []int64{1, 2}}
	d.Sub.Eps = 1e-5
	return d
}

func TestDecodeKeepsDefaults(t *testing.T) {
	got, err := Decode([]byte(`{"scale":2,"rsv":[0,0,0.0],"sub":{"rsv":[]},"outDataType":27,"list":null}`), defaultDecoded())
	require.NoError(t, err)
	want := defaultDecoded()
	want.Scale, want.DType = 2, tensor.BFloat16
	want.List = nil
	assert.Equal(t, want, got)
}

func TestDecodeReplacesLists(t *testing.T) {
	def := defaultDecoded()
	got, err := Decode([]byte(`{"list":[9]}`), def, "list")
	require.NoError(t, err)
	assert.Equal(t, []int64{9}, got.(decoded).List)
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ name, json, text string }{
		{"empty", ``, "malformed JSON"},
		{"syntax", `{"axis":}`, "malformed JSON at byte 9"},
		{"trailing", `{"axis":1} x`, "malformed JSON"},
		{"null", `null`, "want a JSON object"},
		{"array", `[1]`, "want"},
		{"type", `{"axis":"1"}`, `parameter "axis": want int64, got JSON string`},
		{"fraction", `{"axis":1.5}`, `parameter "axis"`},
		{"nested type", `{"axis":1,"sub":{"eps":true}}`, `parameter "sub.eps": want float32, got JSON bool`},
		{"dtype id", `{"axis":1,"outDataType":5}`, "unknown dtype id 5"},
		{"unknown", `{"axis":1,"scal":2}`, `unknown key "scal": want one of "scale", "`},
		{"unknown before missing", `{"Axis":1}`, `unknown key "Axis": want one of "axis", "`},
		{"unknown in a structure", `{"axis":1,"sub":{"epsilon":1}}`, `unknown key "sub.epsilon": want one of "eps"`},
		{"unknown here, known there", `{"axis":1,"eps":1}`, `unknown key "eps": it belongs at "sub.eps": want one of "axis", "`},
		{"twice", `{"axis":1,"scale":1,"axis":2}`, `the key "axis" is there twice`},
		{"missing", `{"scale":1}`, `parameter "axis" is missing`},
		{"reserved", `{"axis":1,"rsv":[0,0,1]}`, `reserved bytes "rsv": want 0, got 1`},
		{"reserved deep", `{"axis":1,"sub":{"eps":1,"rsv":[0,[-1]]}}`, "got -1"},
		{"reserved in a list", `{"axis":1,"rsv":[{"a":0},{"rsv":2}]}`, "got 2"},
		{"reserved after a reserved object", `{"axis":1,"sub":{"rsv":{"k":0}},"rsv":[5]}`, "got 5"},
		{"reserved type", `{"axis":1,"rsv":["0"]}`, "want numbers"},
		{"reserved too large", `{"axis":1,"rsv":[1e999]}`, "1e999"},
		{"validate", `{"axis":-1}`, "want axis at least 0, got -1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec, err := Decode([]byte(c.json), defaultDecoded(), "axis")
			require.ErrorIs(t, err, status.ErrInvalidParam)
			assert.ErrorContains(t, err, c.text)
			assert.Nil(t, spec)
		})
	}
}
