package spelling

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNearest(t *testing.T) {
	known := []string{"transposeA", "transposeB", "hasBias", "outDataType", "LinearOperation", "SoftmaxOperation"}
	for name, want := range map[string]string{
		"hasbias": "hasBias", "bias": "hasBias", "tranposeB": "transposeB", "outDatatype": "outDataType",
		"Linear": "LinearOperation", "softmaxop": "SoftmaxOperation", "hasBias": "hasBias", "": "hasBias",
	} {
		assert.Equal(t, want, Nearest(name, known)[0], name)
	}
	assert.Equal(t, []string{"transposeA", "transposeB", "hasBias", "outDataType", "LinearOperation", "SoftmaxOperation"}, known, "the list stays as it is")
	assert.Equal(t, []string{"a", "b"}, Nearest("x", []string{"a", "b"}), "equally near ones keep their order")
	assert.Empty(t, Nearest("x", nil))
	assert.Equal(t, "b", Nearest(strings.Repeat("b", 1<<20), []string{"a", "b"})[0], "a long name costs no time")
}

func TestList(t *testing.T) {
	assert.Equal(t, `"perm", "axes"`, List("perms", []string{"axes", "perm"}))
	assert.Equal(t, `"a\"b"`, List("", []string{`a"b`}))
}
