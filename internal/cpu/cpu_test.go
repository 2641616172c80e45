package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFeaturesContainLowerLevels(t *testing.T) {
	assert.True(t, VNNI.Has(AVX512))
	assert.True(t, BF16.Has(AVX2))
	assert.False(t, VNNI.Has(BF16))
	assert.False(t, AVX512.Has(VNNI))
	assert.True(t, None.Has(None))
	assert.False(t, None.Has(AVX2))
	for want, f := range map[string]Features{
		"none": None, "avx2": AVX2, "avx512": AVX512, "avx512+vnni": VNNI, "avx512+bf16": BF16, "avx512+vnni+bf16": VNNI | BF16, "avx512+vnni+bf16+fastbf16": all,
	} {
		assert.Equal(t, want, f.String())
	}
	assert.Equal(t, AVX512, all.Level())
	assert.Equal(t, AVX2, AVX2.Level())
	assert.Equal(t, None, None.Level())
}

func TestLevels(t *testing.T) {
	assert.Equal(t, []Features{None}, Levels(None))
	assert.Equal(t, []Features{None, AVX2}, Levels(AVX2))
	assert.Equal(t, []Features{None, AVX2, AVX512}, Levels(AVX512))
	assert.Equal(t, []Features{None, AVX2, AVX512, all}, Levels(all))
}

func TestLimit(t *testing.T) {
	assert.Equal(t, Detected(), Active())
	restore := Limit(AVX2)
	assert.Equal(t, Detected()&AVX2, Active())
	inner := Limit(all)
	assert.Equal(t, Detected()&AVX2, Active(), "a limit gives nothing back")
	inner()
	none := Limit(None)
	assert.Equal(t, None, Active())
	none()
	assert.Equal(t, Detected()&AVX2, Active())
	restore()
	assert.Equal(t, Detected(), Active())
}

func TestNamed(t *testing.T) {
	assert.Equal(t, None, named("none"))
	assert.Equal(t, AVX2, named("avx2"))
	assert.Equal(t, AVX512, named("avx512"))
	assert.Equal(t, all, named(""))
	assert.Equal(t, all, named("sse"))
}
