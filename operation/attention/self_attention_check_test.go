package attention

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

// f16 and i32 describe operands of these checks.
func f16(d ...int64) tensor.Desc { return tensor.Of(tensor.Float16, d...) }
func i32(d ...int64) tensor.Desc { return tensor.Of(tensor.Int32, d...) }

// valid returns a specification and inputs that both profiles accept.
var valid = map[string]func() (SelfAttention, []tensor.Desc){
	"encoder": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfPAEncoder, MaskType: SelfMaskNorm}.Spec(4, 2)
		return p, []tensor.Desc{f16(12, 4, 16), f16(12, 2, 16), f16(12, 2, 16), f16(3, 8, 8), i32(3)}
	},
	"compressed": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfPAEncoder, MaskType: SelfMaskALiBiCompress}.Spec(4, 2)
		p.KernelType = KernelHighPrecision
		return p, []tensor.Desc{f16(12, 64), f16(12, 32), f16(12, 32), f16(256, 256), i32(3), tensor.Of(tensor.Float32, 4)}
	},
	"mla": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfPAEncoder, MLA: true}.Spec(4, 1)
		return p, []tensor.Desc{f16(12, 4, 16), f16(12, 1, 16), i32(2, 3)}
	},
	"quant": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfPAEncoder, QuantType: QuantOffline}.Spec(4, 2)
		i8 := func(d ...int64) tensor.Desc { return tensor.Of(tensor.Int8, d...) }
		f := tensor.Of(tensor.Float32, 4)
		return p, []tensor.Desc{i8(12, 64), i8(12, 32), i8(12, 32), i32(3), f, i32(4), f, i32(4), f}
	},
	"logn": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfDecoder, ScaleType: ScaleLogN}.Spec(4, 2)
		return p, []tensor.Desc{f16(3, 64), f16(3, 32), f16(3, 32), f16(2, 3, 8, 32), f16(2, 3, 8, 32), i32(3), i32(3), i32(1), tensor.Of(tensor.Float32, 3)}
	},
	"cache": func() (SelfAttention, []tensor.Desc) {
		p := Combination{MaskType: SelfMaskNorm}.Spec(4, 2)
		return p, []tensor.Desc{f16(12, 64), f16(12, 32), f16(12, 32), f16(2, 3, 8, 32), f16(2, 3, 8, 32), f16(8, 8), i32(3), i32(3), i32(1)}
	},
	"status": func() (SelfAttention, []tensor.Desc) {
		p := Combination{BatchStatus: true}.Spec(4, 2)
		return p, []tensor.Desc{f16(1, 12, 4, 16), f16(1, 12, 2, 16), f16(1, 12, 2, 16), f16(3, 8, 32), f16(3, 8, 32), i32(3), i32(3), i32(1), i32(3)}
	},
	"bypass": func() (SelfAttention, []tensor.Desc) {
		p := Combination{MaskType: SelfMaskNorm, KVCacheCfg: KVBypass, InputLayout: LayoutBNSD}.Spec(4, 2)
		return p, []tensor.Desc{f16(3, 4, 5, 16), f16(2, 3, 2, 8, 16), f16(2, 3, 2, 8, 16), f16(8, 8), i32(3), i32(3), i32(1)}
	},
	"bnsd": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfPAEncoder, InputLayout: LayoutBNSD}.Spec(4, 2)
		b := func(d ...int64) tensor.Desc { return tensor.Of(tensor.BFloat16, d...) }
		return p, []tensor.Desc{b(3, 4, 5, 16), b(3, 2, 8, 16), b(3, 2, 8, 16), i32(3)}
	},
	"window": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfPAEncoder, MaskType: SelfMaskSlidingWindowNorm}.Spec(4, 2)
		return p, []tensor.Desc{f16(12, 64), f16(12, 32), f16(12, 32), f16(8, 8), i32(3)}
	},
	"prefix": func() (SelfAttention, []tensor.Desc) {
		p := Combination{CalcType: SelfPrefixEncoder, MaskType: SelfMaskALiBiCompress}.Spec(4, 2)
		return p, []tensor.Desc{f16(12, 64), f16(9, 8, 2, 16), f16(9, 8, 2, 16), i32(3, 4), f16(256, 256), i32(3), i32(3), tensor.Of(tensor.Float32, 4)}
	},
}

func TestValidCallsAreValid(t *testing.T) {
	for name, make := range valid {
		p, in := make()
		require.NoError(t, p.Validate(), name)
		for _, profile := range []*operation.Profile{operation.Native(), operation.Board910B()} {
			out, err := operation.InferShape(p, profile, in)
			require.NoError(t, err, "%s, %s", name, profile.Name())
			require.NoError(t, operation.CheckSetup(p, profile, in, out, nil), name)
			wrong := slices.Clone(out)
			wrong[0].Shape = wrong[0].Shape.With(0, out[0].Dim(0)+1)
			require.ErrorIs(t, operation.CheckSetup(p, profile, in, wrong, nil), status.ErrInvalidTensorDim, name)
		}
	}
}

// TestChecks changes one input of a valid call; the native profile and 910b
// refuse it with the same code.
func TestChecks(t *testing.T) {
	for _, x := range []struct {
		kind  string
		input int
		desc  tensor.Desc
		code  status.Code
		text  string
	}{
		{"encoder", 0, f16(12, 5, 16), status.ErrInvalidTensorDim, "input 0 (query): want rows of 4 heads of 16, got [12,5,16]"},
		{"encoder", 0, f16(12, 4, 17), status.ErrInvalidTensorDim, "want rows of 4 heads of 16, got [12,4,17]"},
		{"encoder", 0, f16(12, 64), status.ErrInvalidTensorSize, "input 1 (key): want rank 2, got"},
		{"encoder", 2, f16(11, 2, 16), status.ErrInvalidTensorDim, "input 2 (value): want the key's dimensions but the last"},
		{"encoder", 3, f16(2, 8, 8), status.ErrInvalidTensorDim, "input 3 (attentionMask): want [rows,columns], [3,rows,columns]"},
		{"encoder", 3, f16(8), status.ErrInvalidTensorSize, "input 3 (attentionMask): want rank 2, 3 or 4"},
		{"encoder", 4, i32(3, 3), status.ErrInvalidTensorDim, "input 4 (seqLen): want [2,batch], got [3,3]"},
		{"encoder", 4, i32(1, 1, 3), status.ErrInvalidTensorDimNum, "input 4 (seqLen): want rank 1 or 2"},
		{"compressed", 3, f16(256, 255), status.ErrInvalidTensorDim, "input 3 (attentionMask)"},
		{"compressed", 3, f16(3, 256, 128), status.ErrInvalidTensorDim, "input 3 (attentionMask): want a square mask or [4,rows,columns], got [3,256,128]"},
		{"compressed", 3, f16(1, 4, 256, 128), status.ErrInvalidTensorSize, "input 3 (attentionMask): want rank 2 or 3"},
		{"compressed", 5, tensor.Of(tensor.Float32, 5), status.ErrInvalidTensorDim, "input 5 (slopes): want [4], got [5]"},
		{"mla", 1, f16(12, 1, 7), status.ErrInvalidTensorDim, "input 1 (key): want head size at least mlaVHeadSize 8, got 7"},
		{"mla", 1, f16(12, 2, 16), status.ErrInvalidTensorDim, "input 1 (key): want rows of 1 heads of 16"},
		{"mla", 0, f16(12, 3, 16), status.ErrInvalidTensorDim, "input 0 (query): want rows of 4 heads of 16"},
		{"quant", 4, tensor.Of(tensor.Float32, 5), status.ErrInvalidTensorDim, "input 4 (qkDescale): want [4], got [5]"},
		{"quant", 6, tensor.Of(tensor.Float32, 4, 1), status.ErrInvalidTensorDim, "input 6 (vDescale): want [4], got [4,1]"},
		{"quant", 8, tensor.Of(tensor.Float32, 1), status.ErrInvalidTensorDim, "input 8 (pScale): want [4], got [1]"},
		{"logn", 8, tensor.Of(tensor.Float32, 3, 1), status.ErrInvalidTensorDim, "input 8 (logN): want rank 1"},
		{"logn", 8, tensor.Of(tensor.Float32, 4), status.ErrInvalidTensorDim, "input 8 (logN): want one factor for each of 3 sequences, got [4]"},
		{"cache", 0, f16(11, 64), status.ErrInvalidTensorDim, "input 1 (key): want 11 rows as the query has, got [12,32]"},
		{"cache", 2, f16(12, 64), status.ErrInvalidTensorDim, "input 2 (value): want rows of 32 elements as the cache has, got [12,64]"},
		{"cache", 1, f16(12, 33), status.ErrInvalidTensorDim, "input 1 (key): want a last dimension that 2 heads divide, got [12,33]"},
		{"cache", 4, f16(2, 3, 9, 32), status.ErrInvalidTensorDim, "input 4 (vCache): want the key cache's dimensions but the last"},
		{"cache", 3, f16(3, 8, 32), status.ErrInvalidTensorDimNum, "input 3 (kCache): want rank 4"},
		{"cache", 5, f16(8), status.ErrInvalidTensorSize, "input 5 (attentionMask): want rank 2, 3 or 4"},
		{"cache", 6, i32(4), status.ErrInvalidTensorDim, "input 6 (tokenOffset): want [3], the batch of the cache, got [4]"},
		{"cache", 8, i32(1, 1), status.ErrInvalidTensorDimNum, "input 8 (layerId): want rank 1"},
		{"status", 8, i32(2), status.ErrInvalidTensorDim, "input 8 (batchStatus): want [3], the batch of the cache, got [2]"},
		{"status", 1, f16(1, 12, 4, 8), status.ErrInvalidTensorDim, "input 0 (query): want rows of 4 heads of 8, got [1,12,4,16]"},
		{"bypass", 0, f16(3, 5, 5, 16), status.ErrInvalidTensorDim, "input 0 (query): want 4 heads"},
		{"bypass", 2, f16(2, 3, 2, 9, 16), status.ErrInvalidTensorDim, "input 2 (vCache): want [2,3,2,8,16]"},
		{"bypass", 3, f16(8), status.ErrInvalidTensorDimNum, "input 3 (attentionMask): want rank 2, 3 or 4"},
		{"bnsd", 0, tensor.Of(tensor.BFloat16, 2, 4, 5, 16), status.ErrInvalidTensorDim, "input 0 (query): want batch 3 as the lengths have"},
		{"prefix", 2, f16(9, 8, 2, 32), status.ErrInvalidTensorDim, "input 2 (vCache): want head size 16 as keys and output have, got 32"},
		{"prefix", 2, f16(8, 8, 2, 16), status.ErrInvalidTensorDim, "input 2 (vCache): want the key cache's dimensions but the last"},
		{"prefix", 3, i32(2, 4), status.ErrInvalidTensorDim, "input 5 (qSeqLen): want [2], the rows of the block table, got [3]"},
		{"prefix", 6, i32(4), status.ErrInvalidTensorDim, "input 6 (kvSeqLen): want [3], the rows of the block table, got [4]"},
		{"prefix", 7, tensor.Of(tensor.Float32, 3), status.ErrInvalidTensorDim, "input 7 (slopes): want [4], got [3]"},
		{"prefix", 7, tensor.Of(tensor.Float32, 4, 1), status.ErrInvalidTensorDimNum, "input 7 (slopes): want rank 1"},
	} {
		for _, profile := range []*operation.Profile{operation.Native(), operation.Board910B()} {
			p, in := valid[x.kind]()
			in[x.input] = x.desc
			_, err := operation.InferShape(p, profile, in)
			require.ErrorIs(t, err, x.code, "%s: %s", profile.Name(), x.text)
			assert.Equal(t, x.code, status.CodeOf(err))
			assert.ErrorContains(t, err, x.text, profile.Name())
		}
	}
}

// TestPagedHeadsAreChecked changes both caches at once.
func TestPagedHeadsAreChecked(t *testing.T) {
	p, in := valid["prefix"]()
	in[1], in[2] = f16(9, 8, 3, 16), f16(9, 8, 3, 16)
	_, err := operation.InferShape(p, operation.Native(), in)
	require.ErrorIs(t, err, status.ErrInvalidTensorDim)
	assert.ErrorContains(t, err, "input 1 (kCache): want 2 heads, got [9,8,3,16]")
	in[1], in[2] = f16(9, 8, 32), f16(9, 8, 32)
	_, err = operation.InferShape(p, operation.Native(), in)
	require.NoError(t, err)
}

// TestBoardLimits has calls that only profile 910b refuses.
func TestBoardLimits(t *testing.T) {
	f32 := tensor.Float32
	for _, x := range []struct {
		name   string
		kind   string
		change func(p *SelfAttention, in []tensor.Desc)
		code   status.Code
		text   string
	}{
		{"head size", "encoder", func(_ *SelfAttention, in []tensor.Desc) {
			in[0], in[1], in[2] = f16(12, 4, 577), f16(12, 2, 577), f16(12, 2, 577)
		}, status.ErrInvalidTensorDim, "want head size at most 576, got 577"},
		{"wide head size", "encoder", func(_ *SelfAttention, in []tensor.Desc) {
			in[0], in[1] = f16(12, 4, 1025), f16(12, 2, 1025)
		}, status.ErrInvalidTensorDim, "want head size at most 1024, got 1025"},
		{"value size", "encoder", func(_ *SelfAttention, in []tensor.Desc) {
			in[2] = f16(12, 2, 1025)
		}, status.ErrInvalidTensorDim, "input 2 (value): want head size at most 1024, got 1025"},
		{"equal sizes", "logn", func(_ *SelfAttention, in []tensor.Desc) {
			in[2], in[4] = f16(3, 64), f16(2, 3, 8, 64)
		}, status.ErrInvalidTensorDim, "want head size 16 as the keys have, got 32"},
		{"window head size", "window", func(_ *SelfAttention, in []tensor.Desc) {
			in[0], in[1], in[2] = f16(12, 1028), f16(12, 514), f16(12, 514)
		}, status.ErrInvalidTensorDim, "want head size at most 256, got 257"},
		{"slopes head size", "compressed", func(_ *SelfAttention, in []tensor.Desc) {
			in[0], in[1], in[2] = f16(12, 516), f16(12, 258), f16(12, 258)
		}, status.ErrInvalidTensorDim, "want head size at most 128, got 129"},
		{"cache rows", "cache", func(_ *SelfAttention, in []tensor.Desc) {
			in[0], in[1], in[2], in[3], in[4] = f16(12, 72), f16(12, 36), f16(12, 36), f16(2, 3, 8, 36), f16(2, 3, 8, 36)
		}, status.ErrInvalidTensorDim, "want rows of a multiple of 16 elements, got [12,36]"},
		{"window mask", "window", func(_ *SelfAttention, in []tensor.Desc) {
			in[3] = f16(3, 8, 8)
		}, status.ErrInvalidTensorDim, "input 3 (attentionMask): want rank 2"},
		{"compressed side", "compressed", func(_ *SelfAttention, in []tensor.Desc) {
			in[3] = f16(64, 64)
		}, status.ErrInvalidTensorDim, "input 3 (attentionMask): want [256,256], got [64,64]"},
		{"compressed precision", "compressed", func(p *SelfAttention, _ []tensor.Desc) {
			p.KernelType = KernelDefault
		}, status.ErrInvalidParam, "an f16 mask of type ALIBI_COMPRESS needs kernelType HIGH_PRECISION, got DEFAULT"},
		{"logN type", "logn", func(_ *SelfAttention, in []tensor.Desc) {
			in[8] = f16(3)
		}, status.ErrInvalidTensorIniMatch, "input 8 (logN): want f32, got f16[3]"},
		{"prefix head size", "prefix", func(_ *SelfAttention, in []tensor.Desc) {
			in[0], in[1], in[2] = f16(12, 72), f16(9, 8, 2, 18), f16(9, 8, 2, 18)
		}, status.ErrInvalidTensorDim, "input 1 (kCache): want a head size of at most 128 and a multiple of 16, got 18"},
		{"prefix block", "prefix", func(_ *SelfAttention, in []tensor.Desc) {
			in[1], in[2] = f16(9, 1025, 2, 16), f16(9, 1025, 2, 16)
		}, status.ErrInvalidTensorDim, "want at most 16384 elements of a head in a block, got 1025x16"},
		{"type", "encoder", func(_ *SelfAttention, in []tensor.Desc) {
			for i := range 4 {
				in[i].DType = f32
			}
		}, status.ErrInvalidTensorIniMatch, "input 0 (query): want f16 or bf16, got f32["},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, in := valid[x.kind]()
			x.change(&p, in)
			_, err := operation.InferShape(p, operation.Native(), in)
			require.NoError(t, err)
			_, err = operation.InferShape(p, operation.Board910B(), in)
			require.Equal(t, x.code, status.CodeOf(err), "%v", err)
			assert.ErrorContains(t, err, x.text)
		})
	}
}

// TestLogNKinds refuses calc types without factors under every profile.
func TestLogNKinds(t *testing.T) {
	p, in := valid["logn"]()
	p.CalcType = SelfEncoder
	for _, profile := range []*operation.Profile{operation.Native(), operation.Board910B()} {
		_, err := operation.InferShape(p, profile, in)
		require.Equal(t, status.ErrInvalidParam, status.CodeOf(err))
		assert.ErrorContains(t, err, "scaleType LOGN needs calcType DECODER or PA_ENCODER, got ENCODER")
	}
	p.CalcType = SelfPAEncoder
	in = []tensor.Desc{f16(3, 64), f16(3, 32), f16(3, 32), i32(3), tensor.Of(tensor.Float32, 9)}
	_, err := operation.InferShape(p, operation.Board910B(), in)
	require.Equal(t, status.ErrInvalidParam, status.CodeOf(err))
	assert.ErrorContains(t, err, "scaleType LOGN needs kernelType HIGH_PRECISION, got DEFAULT")
}

func TestValidateTexts(t *testing.T) {
	ok := func() SelfAttention { p := DefaultSelfAttention(); p.HeadNum = 4; return p }
	require.NoError(t, ok().Validate())
	nan := float32(0)
	nan /= nan
	for text, change := range map[string]func(p *SelfAttention){
		"headNum: want at least 1, got 0":                                      func(p *SelfAttention) { p.HeadNum = 0 },
		"kvHeadNum: want at least 0, got -1":                                   func(p *SelfAttention) { p.KVHeadNum = -1 },
		"headNum: want a multiple of kvHeadNum 3, got 4":                       func(p *SelfAttention) { p.KVHeadNum = 3 },
		"calcType: want 0 to 4, got 5":                                         func(p *SelfAttention) { p.CalcType = 5 },
		"maskType: want 0 to 9, got 10":                                        func(p *SelfAttention) { p.MaskType = 10 },
		"kernelType: want 0 to 1, got 2":                                       func(p *SelfAttention) { p.KernelType = KernelExpM8V2 },
		"windowSize: want at least 0, got -3":                                  func(p *SelfAttention) { p.WindowSize = -3 },
		"qScale, qkScale: want finite numbers, got 1, NaN":                     func(p *SelfAttention) { p.QKScale = nan },
		"clampMin, clampMax: got NaN":                                          func(p *SelfAttention) { p.ClampMin = nan },
		"mlaVHeadSize: want 0 to 576, got 577":                                 func(p *SelfAttention) { p.MLAVHeadSize = 577 },
		"isTriuMask: want 0 without a mask, got 1":                             func(p *SelfAttention) { p.IsTriuMask = 1 },
		"cacheType: SWA needs a windowSize":                                    func(p *SelfAttention) { p.CacheType = CacheSWA },
		"maskType: want a sliding window with windowSize 2, got NORM":          func(p *SelfAttention) { p.MaskType, p.WindowSize = SelfMaskNorm, 2 },
		"maskType: ALIBI_COMPRESS needs calcType PA_ENCODER or PREFIX_ENCODER": func(p *SelfAttention) { p.MaskType = SelfMaskALiBiCompress },
	} {
		p := ok()
		change(&p)
		err := p.Validate()
		require.ErrorIs(t, err, status.ErrInvalidParam, text)
		assert.ErrorContains(t, err, text)
	}
}
