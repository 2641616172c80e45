package paged

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"goatb/tensor"
)

var (
	f32, f16, bf16, i8 = tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int8
)

// plain is a small decode problem that tests change.
func plain() setup {
	return setup{
		params: Params{Scale: 0.3, Heads: 4, KVHeads: 2},
		q:      f32, kv: f32, mask: f32, out: f32, scaleType: f32,
		tokens: 3, dk: 8, dv: 8, bs: 4, columns: 3, blocks: 9,
		contexts: []int64{5, 12, 1}, seed: 1,
	}
}

// tolerance bounds the error against float64, relative to values of about 1:
// f32 sums of up to 600 products, and one rounding of the output.
func tolerance(t tensor.DType) float64 {
	switch t {
	case f16:
		return 1e-3
	case bf16:
		return 8e-3
	}
	return 2e-5
}

func compare(t testing.TB, b *problem, got []byte) {
	t.Helper()
	want := b.reference()
	have, err := tensor.Float64s(got, b.out)
	require.NoError(t, err)
	require.Len(t, have, len(want))
	tol := tolerance(b.out)
	if b.params.Quant == Offline || b.params.Quant == Online {
		// A probability at the middle of two levels may round to either: one
		// level of 1/60, times 127 of a value, times its scale of 0.02.
		tol = 0.05
	}
	for i := range want {
		scale := math.Max(1, math.Abs(want[i]))
		require.InDelta(t, want[i], have[i], tol*scale, "element %d of %v", i, b.p.Out[0])
	}
}

// check compares both ways of computing with the reference and each other.
func check(t *testing.T, s setup) {
	t.Helper()
	b := s.build()
	one := b.attend(t)
	compare(t, b, one)
	two := b.split(t)
	require.True(t, bytes.Equal(one, two), "Attend and Parts+Merge differ")
}

// wide has rows of which an item loads only a few at once.
func wide(s *setup) {
	s.q, s.kv, s.out, s.dk, s.dv = f16, f16, f16, 128, 136
	s.params.Heads, s.params.KVHeads, s.contexts = 8, 8, []int64{730, 64, 129}
}

func TestAttendAgainstFloat64(t *testing.T) {
	cases := map[string]func(*setup){
		"plain":            func(s *setup) {},
		"f16":              func(s *setup) { s.q, s.kv, s.out = f16, f16, f16 },
		"bf16":             func(s *setup) { s.q, s.kv, s.out = bf16, bf16, bf16 },
		"f32 of f16 cache": func(s *setup) { s.kv = f16 },
		"block size 1":     func(s *setup) { s.bs, s.columns, s.blocks = 1, 12, 40 },
		"block size 3":     func(s *setup) { s.bs, s.columns, s.blocks = 3, 4, 12 },
		"block size 8":     func(s *setup) { s.bs, s.columns, s.blocks = 8, 2, 6 },
		"block size 512":   func(s *setup) { s.bs, s.columns, s.blocks = 512, 1, 3 },
		"several parts": func(s *setup) {
			s.bs, s.columns, s.blocks, s.contexts = 16, 80, 240, []int64{1280, 513, 1024}
		},
		"several parts f16": func(s *setup) {
			s.q, s.kv, s.out = f16, f16, f16
			s.bs, s.columns, s.blocks, s.contexts = 128, 10, 30, []int64{1280, 512, 511}
		},
		"several loads of a part": func(s *setup) {
			wide(s)
			s.bs, s.columns, s.blocks = 128, 6, 18
		},
		"several loads of small blocks": func(s *setup) {
			wide(s)
			s.bs, s.columns, s.blocks = 24, 31, 93
		},
		"head dims 80 and 5": func(s *setup) { s.dk, s.dv = 80, 5 },
		"head dim 1":         func(s *setup) { s.dk, s.dv = 1, 1 },
		"head dim 576":       func(s *setup) { s.dk, s.dv = 576, 512 },
		"one head":           func(s *setup) { s.params.Heads, s.params.KVHeads = 1, 1 },
		"group of 70":        func(s *setup) { s.params.Heads, s.params.KVHeads = 70, 1 },
		"33 kv heads":        func(s *setup) { s.params.Heads, s.params.KVHeads = 33, 33 },
		"wide kv heads":      func(s *setup) { s.params.Heads, s.params.KVHeads, s.dk, s.dv, s.kv = 7, 7, 700, 700, f16 },
		"head major":         func(s *setup) { s.params.HeadMajor = true },
		"head major f16": func(s *setup) {
			s.params.HeadMajor, s.kv, s.bs, s.columns, s.blocks = true, f16, 16, 1, 3
		},
		"value in key": func(s *setup) {
			s.params.ValueDim, s.dk, s.dv, s.params.KVHeads = 6, 9, 6, 1
		},
		"value in key bf16": func(s *setup) {
			s.params.ValueDim, s.dk, s.dv, s.params.KVHeads, s.kv = 6, 9, 6, 1, bf16
		},
		"value in keys of two heads": func(s *setup) { s.params.ValueDim, s.dk, s.dv, s.bs, s.blocks = 6, 9, 6, 8, 9 },
		"logN":                       func(s *setup) { s.logN = true },
		"razor":                      func(s *setup) { s.razor = true },
		"status": func(s *setup) {
			s.params.RunStatus, s.statuses = true, []int64{1, 0, 1}
		},
		"status with fewer rows": func(s *setup) {
			s.tokens, s.params.RunStatus, s.statuses = 2, true, []int64{1, 1, 1}
		},
		"context 0": func(s *setup) { s.contexts = []int64{2, 0, 3} },
		"all empty": func(s *setup) { s.contexts = []int64{0, 0, 0} },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s := plain()
			change(&s)
			check(t, s)
		})
	}
}

func TestAttendQueryLens(t *testing.T) {
	for name, change := range map[string]func(*setup){
		"short":          func(s *setup) {},
		"some empty":     func(s *setup) { s.queryLens, s.tokens = []int64{0, 4, 1}, 5 },
		"no context":     func(s *setup) { s.contexts = []int64{5, 0, 1} },
		"padding rows":   func(s *setup) { s.tokens = 9 },
		"many query":     func(s *setup) { s.queryLens, s.tokens = []int64{70, 130, 1}, 201 },
		"many heads":     func(s *setup) { s.params.Heads, s.params.KVHeads = 40, 2 },
		"f16 many query": func(s *setup) { s.queryLens, s.tokens, s.q, s.kv, s.out = []int64{3, 90, 1}, 94, f16, f16, f16 },
	} {
		t.Run(name, func(t *testing.T) {
			s := plain()
			s.params.QueryLens = true
			s.bs, s.columns, s.blocks = 16, 9, 27
			s.contexts, s.queryLens, s.tokens = []int64{5, 140, 1}, []int64{2, 3, 1}, 6
			if name == "many query" || name == "f16 many query" {
				s.contexts = []int64{70, 140, 1}
			}
			change(&s)
			t.Run("no mask", func(t *testing.T) { check(t, s) })
			s.params.Mask = Causal
			t.Run("causal", func(t *testing.T) { check(t, s) })
			s.params.Mask, s.maskShape, s.hide = ByToken, []int64{s.tokens, 144}, 0.5
			t.Run("by token", func(t *testing.T) { check(t, s) })
			s.params.Mask, s.maskShape = ByPosition, []int64{144, 144}
			t.Run("by position", func(t *testing.T) { check(t, s) })
			s.maskShape = []int64{3, 1, 144}
			t.Run("by sequence", func(t *testing.T) { check(t, s) })
			s.maskShape = []int64{1, 144, 144}
			t.Run("shared", func(t *testing.T) { check(t, s) })
		})
	}
}

func TestAttendMaskBySequence(t *testing.T) {
	for _, shape := range [][]int64{{3, 12}, {1, 12}, {3, 1, 12}, {3, 4, 12}, {1, 4, 13}, {3, 1, 1, 12}, {3, 4, 1, 12}, {1, 1, 1, 99}} {
		for _, mt := range []tensor.DType{f32, f16, bf16} {
			t.Run(fmt.Sprint(shape, mt), func(t *testing.T) {
				s := plain()
				s.params.Mask, s.maskShape, s.mask, s.hide = BySequence, shape, mt, 0.4
				check(t, s)
			})
		}
	}
}

func TestAttendPerHead(t *testing.T) {
	for name, change := range map[string]func(*setup){
		"plain":  func(s *setup) {},
		"mask":   func(s *setup) { s.params.Mask, s.maskShape = BySequence, []int64{3, 4, 1, 12} },
		"razor":  func(s *setup) { s.razor = true },
		"status": func(s *setup) { s.params.RunStatus, s.statuses = true, []int64{1, 0, 0, 1, 1, 1} },
		"status by sequence": func(s *setup) {
			s.params.RunStatus, s.statuses = true, []int64{1, 0, 1}
		},
		"dequant": func(s *setup) { s.params.Quant, s.kv, s.offsets = Dequant, i8, true },
	} {
		t.Run(name, func(t *testing.T) {
			s := plain()
			s.params.PerHead = true
			s.contexts, s.blocks = []int64{5, 12, 0, 7, 3, 1}, 18
			change(&s)
			check(t, s)
		})
	}
}

func TestAttendQuant(t *testing.T) {
	long := func(s *setup) {
		s.bs, s.columns, s.blocks, s.contexts = 64, 11, 33, []int64{700, 130, 1}
	}
	for name, change := range map[string]func(*setup){
		"dequant":         func(s *setup) { s.params.Quant, s.kv = Dequant, i8 },
		"dequant offsets": func(s *setup) { s.params.Quant, s.kv, s.offsets = Dequant, i8, true },
		"dequant int64":   func(s *setup) { s.params.Quant, s.kv, s.offsets, s.scaleType = Dequant, i8, true, tensor.Int64 },
		"dequant long":    func(s *setup) { s.params.Quant, s.kv, s.offsets = Dequant, i8, true; long(s) },
		"dequant, several loads": func(s *setup) {
			wide(s)
			s.params.Quant, s.q, s.kv, s.out, s.offsets = Dequant, f32, i8, f32, true
			s.dk, s.bs, s.columns, s.blocks = 256, 24, 31, 93
		},
		"dequant, groups of 3": func(s *setup) {
			s.params.Quant, s.q, s.kv, s.out, s.offsets = Dequant, f16, i8, f32, true
			s.params.Heads, s.params.KVHeads, s.dk, s.dv = 9, 3, 96, 33
			long(s)
		},
		"dequant, groups of 7, head major": func(s *setup) {
			s.params.Quant, s.q, s.kv, s.out, s.params.HeadMajor = Dequant, f32, i8, f32, true
			s.params.Heads, s.params.KVHeads, s.dk, s.dv = 14, 2, 32, 64
			long(s)
			s.contexts = []int64{700, 0, 17}
		},
		"dequant head major":   func(s *setup) { s.params.Quant, s.kv, s.offsets, s.params.HeadMajor = Dequant, i8, true, true },
		"online":               func(s *setup) { s.params.Quant, s.q, s.kv, s.out = Online, i8, i8, f16 },
		"online long":          func(s *setup) { s.params.Quant, s.q, s.kv, s.out = Online, i8, i8, f16; long(s) },
		"online of floats":     func(s *setup) { s.params.Quant, s.q, s.kv, s.out = Online, f16, f16, f16 },
		"offline":              func(s *setup) { s.params.Quant, s.q, s.kv, s.out = Offline, i8, i8, bf16 },
		"offline long":         func(s *setup) { s.params.Quant, s.q, s.kv, s.out = Offline, i8, i8, f16; long(s) },
		"offline value in key": func(s *setup) { s.params.Quant, s.q, s.kv, s.params.ValueDim, s.dk = Offline, i8, i8, 8, 12 },
		"online mask": func(s *setup) {
			s.params.Quant, s.q, s.kv = Online, i8, i8
			long(s)
			s.params.Mask, s.maskShape, s.hide = BySequence, []int64{3, 1, 704}, 0.3
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := plain()
			change(&s)
			check(t, s)
		})
	}
}
