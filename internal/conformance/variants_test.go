package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// variants are calls that no suite has a row for, or none that is small enough:
// operation, parameters, inputs as "type shape", outputs alike. Their data come
// from the operation's generator.
var variants = []struct{ op, param, in, out string }{
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.25,"calcType":3,"maskType":9}`, "float16 20,64;float16 20,32;float16 20,32;int32 3", "float16 20,64"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.25,"calcType":3,"maskType":3}`, "bf16 20,4,16;bf16 20,2,16;bf16 20,2,16;bf16 128,128;int32 3", "bf16 20,4,16"},
	{"SelfAttention", `{"headNum":2,"qkScale":0.25,"calcType":3,"maskType":1,"clampType":1,"clampMin":-0.5,"clampMax":0.75}`, "float16 12,32;float16 12,32;float16 12,32;float16 8,8;int32 2", "float16 12,32"},
	{"SelfAttention", `{"headNum":2,"qkScale":0.25,"calcType":3,"maskType":8,"windowSize":5}`, "float16 24,32;float16 24,32;float16 24,32;float16 512,512;int32 2", "float16 24,32"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":1,"qkScale":0.25,"calcType":3,"maskType":0,"mlaVHeadSize":16}`, "float16 9,128;float16 9,32;int32 2", "float16 9,64"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.25,"calcType":3}`, "float16 20,64;float16 20,32;float16 20,32;int32 2,3", "float16 20,64"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.25,"calcType":4,"maskType":9,"isTriuMask":1,"kernelType":1}`, "float16 7,64;float16 9,8,2,16;float16 9,8,2,16;int32 2,4;int32 2;int32 2", "float16 7,64"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.25,"calcType":4,"maskType":3,"isTriuMask":1,"kernelType":1}`, "bf16 7,64;bf16 9,8,2,16;bf16 9,8,2,16;int32 2,4;bf16 128,128;int32 2;int32 2", "bf16 7,64"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qScale":0.5,"qkScale":0.25,"calcType":1,"maskType":1,"kvcacheCfg":1}`, "float16 8,64;float16 2,4,24,32;float16 2,4,24,32;float16 4,24,24;int32 4;int32 4;int32 1", "float16 8,64"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.25,"calcType":2,"maskType":0,"kvcacheCfg":1}`, "float16 4,64;float16 2,4,24,32;float16 2,4,24,32;int32 4;int32 4;int32 1", "float16 4,64"},
	{"SelfAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.25,"calcType":1,"maskType":1}`, "float16 8,64;float16 8,32;float16 8,32;float16 2,4,24,32;float16 2,4,24,32;float16 4,24,24;int32 4;int32 4;int32 1", "float16 8,64"},

	{"PagedAttention", `{"headNum":8,"kvHeadNum":1,"qkScale":0.125,"mlaVHeadSize":32}`, "float16 3,8,48;float16 12,16,1,48;int32 3,4;int32 3", "float16 3,8,32"},
	{"PagedAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.125,"compressType":2}`, "float16 2,4,64;float16 24,16,1,64;float16 24,16,1,64;int32 4,4;int32 4;float 24,16", "float16 2,4,64"},
	{"PagedAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.02,"quantType":2,"outDataType":1}`, "int8 2,4,64;int8 9,32,2,64;int8 9,32,2,64;int32 2,4;int32 2;float 4;float 4;float 4", "float16 2,4,64"},
	{"PagedAttention", `{"headNum":4,"kvHeadNum":2,"qkScale":0.02,"quantType":3,"outDataType":27}`, "int8 2,4,64;int8 9,32,2,64;int8 9,32,2,64;int32 2,4;int32 2;float 4;float 4", "bf16 2,4,64"},

	{"ReshapeAndCache", `{"compressType":1}`, "float16 20,3,32;float16 20,3,32;float16 16,8,1,32;float16 16,8,1,32;int32 6;int32 6;int32 2", "float16 16,8,1,32;float16 16,8,1,32"},
	{"Sort", `{"num":[3000]}`, "float16 3,2,4096", "float16 3,2,3000;int32 3,2,3000"},
	{"Sort", `{"num":[8]}`, "bf16 5,64", "bf16 5,8;int32 5,8"},
	{"Sort", `{"num":[512]}`, "float 3,25000", "float 3,512;int32 3,512"},
	{"ReshapeAndCache", `{"compressType":2}`, "bf16 20,3,32;bf16 20,3,32;bf16 16,8,1,32;bf16 16,8,1,32;int32 6;int32 6;int32 2;int32 6", "bf16 16,8,1,32;bf16 16,8,1,32"},
}

func TestVariantsWithoutRows(t *testing.T) {
	e := runtime(t)
	for _, v := range variants {
		inTypes, inShapes, formats := columnsOf(v.in)
		outTypes, outShapes, outFormats := columnsOf(v.out)
		count := func(types string) string { return fmt.Sprint(strings.Count(types, ";") + 1) }
		res := checkText(t, Options{Engine: e}, line(map[string]string{
			"OpName": v.op + "Operation", "OpParam": v.param, "DataGenType": "customize", "DataGenRange": "",
			"InNum": count(inTypes), "InDType": inTypes, "InShape": inShapes, "InFormat": formats,
			"OutNum": count(outTypes), "OutDType": outTypes, "OutShape": outShapes, "OutFormat": outFormats,
		}))
		c := res.Cases[0]
		assert.Equal(t, Passed, c.Status, "%s %s: %s %s", v.op, v.param, c.Got, c.Reason)
	}
}

// columnsOf splits "type shape;..." into the columns of a row.
func columnsOf(text string) (types, shapes, formats string) {
	var t, s, f []string
	for part := range strings.SplitSeq(text, ";") {
		dt, shape, _ := strings.Cut(part, " ")
		t, s, f = append(t, dt), append(s, shape), append(f, "nd")
	}
	return strings.Join(t, ";"), strings.Join(s, ";"), strings.Join(f, ";")
}
