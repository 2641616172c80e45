package attention

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"goatb/operation"
	"goatb/status"
	"goatb/tensor"
)

func TestPagedValidate(t *testing.T) {
	base := PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 1}
	mla := PagedAttention{HeadNum: 4, KVHeadNum: 1, QKScale: 1, MLAVHeadSize: 512}
	for name, c := range map[string]struct {
		from   PagedAttention
		change func(*PagedAttention)
		ok     bool
	}{
		"plain":             {base, func(p *PagedAttention) {}, true},
		"kv heads as heads": {base, func(p *PagedAttention) { p.KVHeadNum = 0 }, true},
		"no heads":          {base, func(p *PagedAttention) { p.HeadNum = 0 }, false},
		"negative heads":    {base, func(p *PagedAttention) { p.HeadNum = -4 }, false},
		"negative kv heads": {base, func(p *PagedAttention) { p.KVHeadNum = -1 }, false},
		"uneven heads":      {base, func(p *PagedAttention) { p.KVHeadNum = 3 }, false},
		"mask range":        {base, func(p *PagedAttention) { p.MaskType = 6 }, false},
		"mask below":        {base, func(p *PagedAttention) { p.MaskType = -1 }, false},
		"mask free":         {base, func(p *PagedAttention) { p.MaskType = PagedMaskFree }, true},
		"mask compress":     {base, func(p *PagedAttention) { p.MaskType = PagedMaskNormCompress }, false},
		"quant range":       {base, func(p *PagedAttention) { p.QuantType = 4 }, false},
		"compress range":    {base, func(p *PagedAttention) { p.CompressType = 3 }, false},
		"calc range":        {base, func(p *PagedAttention) { p.CalcType = 2 }, false},
		"scale range":       {base, func(p *PagedAttention) { p.ScaleType = 2 }, false},
		"layout range":      {base, func(p *PagedAttention) { p.InputLayout = 2 }, false},
		"rope":              {base, func(p *PagedAttention) { p.CompressType = PagedCompressKVHeadRope }, true},
		"rope mask":         {base, func(p *PagedAttention) { p.CompressType, p.MaskType = PagedCompressKVHeadRope, PagedMaskNorm }, false},
		"rope status":       {base, func(p *PagedAttention) { p.CompressType, p.BatchRunStatusEnable = PagedCompressKVHeadRope, true }, false},
		"kv head mask status": {base, func(p *PagedAttention) {
			p.CompressType, p.BatchRunStatusEnable, p.MaskType = PagedCompressKVHead, true, PagedMaskALiBi
		}, true},
		"spec":         {base, func(p *PagedAttention) { p.CalcType, p.MaskType = PagedCalcSpec, PagedMaskSpec }, true},
		"spec norm":    {base, func(p *PagedAttention) { p.CalcType, p.MaskType = PagedCalcSpec, PagedMaskNorm }, true},
		"spec no mask": {base, func(p *PagedAttention) { p.CalcType = PagedCalcSpec }, false},
		"spec alibi":   {base, func(p *PagedAttention) { p.CalcType, p.MaskType = PagedCalcSpec, PagedMaskALiBi }, false},
		"spec status": {base, func(p *PagedAttention) {
			p.CalcType, p.MaskType, p.BatchRunStatusEnable = PagedCalcSpec, PagedMaskSpec, true
		}, false},
		"spec compress": {base, func(p *PagedAttention) {
			p.CalcType, p.MaskType, p.CompressType = PagedCalcSpec, PagedMaskSpec, PagedCompressKVHead
		}, false},
		"spec dequant": {base, func(p *PagedAttention) {
			p.CalcType, p.MaskType, p.QuantType = PagedCalcSpec, PagedMaskSpec, QuantDequantFusion
		}, false},
		"spec mask alone": {base, func(p *PagedAttention) { p.MaskType = PagedMaskSpec }, true},
		"online":          {base, func(p *PagedAttention) { p.QuantType, p.OutDataType = QuantOnline, tensor.BFloat16 }, true},
		"online no type":  {base, func(p *PagedAttention) { p.QuantType = QuantOnline }, false},
		"online f32":      {base, func(p *PagedAttention) { p.QuantType, p.OutDataType = QuantOnline, tensor.Float32 }, false},
		"offline offset": {base, func(p *PagedAttention) {
			p.QuantType, p.OutDataType, p.HasQuantOffset = QuantOffline, tensor.Float16, true
		}, false},
		"offline compress": {base, func(p *PagedAttention) {
			p.QuantType, p.OutDataType, p.CompressType = QuantOffline, tensor.Float16, PagedCompressKVHead
		}, false},
		"offline spec": {base, func(p *PagedAttention) {
			p.QuantType, p.OutDataType, p.CalcType, p.MaskType = QuantOffline, tensor.Float16, PagedCalcSpec, PagedMaskSpec
		}, false},
		"logN": {base, func(p *PagedAttention) {
			p.ScaleType, p.MaskType, p.BatchRunStatusEnable = ScaleLogN, PagedMaskALiBi, true
		}, true},
		"logN quant":    {base, func(p *PagedAttention) { p.ScaleType, p.QuantType = ScaleLogN, QuantDequantFusion }, false},
		"logN spec":     {base, func(p *PagedAttention) { p.ScaleType, p.CalcType, p.MaskType = ScaleLogN, PagedCalcSpec, PagedMaskSpec }, false},
		"logN compress": {base, func(p *PagedAttention) { p.ScaleType, p.CompressType = ScaleLogN, PagedCompressKVHead }, false},
		"bnsd": {base, func(p *PagedAttention) {
			p.InputLayout, p.MaskType, p.BatchRunStatusEnable = LayoutBNSD, PagedMaskNorm, true
		}, true},
		"bnsd spec": {base, func(p *PagedAttention) {
			p.InputLayout, p.CalcType, p.MaskType = LayoutBNSD, PagedCalcSpec, PagedMaskSpec
		}, false},
		"bnsd compress": {base, func(p *PagedAttention) { p.InputLayout, p.CompressType = LayoutBNSD, PagedCompressKVHead }, false},
		"bnsd quant":    {base, func(p *PagedAttention) { p.InputLayout, p.QuantType = LayoutBNSD, QuantDequantFusion }, false},
		"bnsd logN":     {base, func(p *PagedAttention) { p.InputLayout, p.ScaleType = LayoutBNSD, ScaleLogN }, false},
		"mla":           {mla, func(p *PagedAttention) { p.MaskType, p.BatchRunStatusEnable = PagedMaskNorm, true }, true},
		"mla spec":      {mla, func(p *PagedAttention) { p.CalcType = PagedCalcSpec }, true},
		"mla spec mask": {mla, func(p *PagedAttention) { p.CalcType, p.MaskType = PagedCalcSpec, PagedMaskSpec }, true},
		"mla spec norm": {mla, func(p *PagedAttention) { p.CalcType, p.MaskType = PagedCalcSpec, PagedMaskNorm }, false},
		"mla spec online": {mla, func(p *PagedAttention) {
			p.CalcType, p.QuantType, p.OutDataType = PagedCalcSpec, QuantOnline, tensor.Float16
		}, false},
		"mla spec status":      {mla, func(p *PagedAttention) { p.CalcType, p.BatchRunStatusEnable = PagedCalcSpec, true }, false},
		"mla online":           {mla, func(p *PagedAttention) { p.QuantType, p.OutDataType = QuantOnline, tensor.Float16 }, true},
		"mla alibi":            {mla, func(p *PagedAttention) { p.MaskType = PagedMaskALiBi }, false},
		"mla dequant":          {mla, func(p *PagedAttention) { p.QuantType = QuantDequantFusion }, false},
		"mla compress":         {mla, func(p *PagedAttention) { p.CompressType = PagedCompressKVHead }, false},
		"mla logN":             {mla, func(p *PagedAttention) { p.ScaleType = ScaleLogN }, false},
		"mla bnsd":             {mla, func(p *PagedAttention) { p.InputLayout = LayoutBNSD }, false},
		"mla kv heads":         {mla, func(p *PagedAttention) { p.KVHeadNum = 2 }, false},
		"mla kv heads default": {mla, func(p *PagedAttention) { p.KVHeadNum = 0 }, false},
		"mla size":             {mla, func(p *PagedAttention) { p.MLAVHeadSize = 577 }, false},
		"mla negative":         {mla, func(p *PagedAttention) { p.MLAVHeadSize = -1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.from
			c.change(&p)
			if c.ok {
				assert.NoError(t, p.Validate())
			} else {
				assert.ErrorIs(t, p.Validate(), status.ErrInvalidParam)
			}
		})
	}
}

func TestPagedJSON(t *testing.T) {
	s, err := decodePaged([]byte(`{"headNum":32,"qkScale":0.5,"kvHeadNum":0,"outDataType":27,"quantType":3,"rsv":[0]}`))
	require.NoError(t, err)
	assert.Equal(t, PagedAttention{HeadNum: 32, QKScale: 0.5, OutDataType: tensor.BFloat16, QuantType: QuantOnline}, s)
	assert.Equal(t, float32(1), DefaultPagedAttention().QKScale)
	for _, text := range []string{`{"qkScale":0.5,"kvHeadNum":2}`, `{"headNum":4,"kvHeadNum":2}`, `{"headNum":4,"qkScale":1}`} {
		_, err := decodePaged([]byte(text))
		assert.ErrorIs(t, err, status.ErrInvalidParam, text)
	}
}

// pagedChange replaces an input or the output (port "output") by name.
type pagedChange struct {
	port string
	desc tensor.Desc
}

// TestPagedSetupRefuses changes one operand of a good call at a time. infer is
// what InferShape says, setup what Setup says, on the board's profile; the
// profile of the mathematics agrees unless native says otherwise.
func TestPagedSetupRefuses(t *testing.T) {
	f16, i8, i32, f32 := tensor.Float16, tensor.Int8, tensor.Int32, tensor.Float32
	plain := PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 1}
	with := func(change func(*PagedAttention)) PagedAttention {
		p := plain
		change(&p)
		return p
	}
	mask := with(func(p *PagedAttention) { p.MaskType = PagedMaskNorm })
	spec := with(func(p *PagedAttention) { p.CalcType, p.MaskType = PagedCalcSpec, PagedMaskSpec })
	specNorm := with(func(p *PagedAttention) { p.CalcType, p.MaskType = PagedCalcSpec, PagedMaskNorm })
	ran := with(func(p *PagedAttention) { p.BatchRunStatusEnable = true })
	dequant := with(func(p *PagedAttention) { p.QuantType, p.HasQuantOffset = QuantDequantFusion, true })
	online := with(func(p *PagedAttention) { p.QuantType, p.OutDataType = QuantOffline, f16 })
	rope := with(func(p *PagedAttention) { p.CompressType = PagedCompressKVHeadRope })
	logN := with(func(p *PagedAttention) { p.ScaleType = ScaleLogN })
	bnsd := with(func(p *PagedAttention) { p.InputLayout = LayoutBNSD })
	mla := PagedAttention{HeadNum: 4, KVHeadNum: 1, QKScale: 1, MLAVHeadSize: 8}
	const none, rank, dim = status.OK, status.ErrInvalidTensorDimNum, status.ErrInvalidTensorDim
	// The cases' sizes: 4 sequences, 6 columns, 25 blocks of 4, 8 query rows
	// with SPEC, 6 contexts of 3 tokens by head.
	for _, c := range []struct {
		name         string
		spec         PagedAttention
		change       []pagedChange
		infer, setup status.Code
	}{
		{"good", plain, nil, none, none},
		{"value rank", plain, []pagedChange{{"vCache", tensor.Of(f16, 25, 4, 16)}}, rank, rank},
		{"query rank", plain, []pagedChange{{"query", tensor.Of(f16, 4, 32)}}, rank, rank},
		{"key rank", plain, []pagedChange{{"kCache", tensor.Of(f16, 25, 4, 16)}}, rank, rank},
		{"table rank", plain, []pagedChange{{"blockTables", tensor.Of(i32, 24)}}, rank, rank},
		{"lens rank", plain, []pagedChange{{"contextLens", tensor.Of(i32, 4, 1)}}, rank, rank},
		{"blocks", plain, []pagedChange{{"vCache", tensor.Of(f16, 24, 4, 2, 8)}}, dim, dim},
		{"block size", plain, []pagedChange{{"vCache", tensor.Of(f16, 25, 5, 2, 8)}}, dim, dim},
		{"kv heads", plain, []pagedChange{{"vCache", tensor.Of(f16, 25, 4, 1, 8)}}, dim, dim},
		{"head size", plain, []pagedChange{{"query", tensor.Of(f16, 4, 4, 9)}}, dim, dim},
		{"few tables", ran, []pagedChange{{"blockTables", tensor.Of(i32, 3, 6)}}, dim, dim},
		{"few lens", ran, []pagedChange{{"contextLens", tensor.Of(i32, 3)}}, dim, dim},
		{"spare sequences", ran, []pagedChange{{"query", tensor.Of(f16, 3, 4, 8)}, {"output", tensor.Of(f16, 3, 4, 8)}}, none, none},
		{"status", ran, []pagedChange{{"batchRunStatus", tensor.Of(i32, 5)}}, none, dim},
		{"mla size", mla, []pagedChange{{"query", tensor.Of(f16, 4, 4, 7)}, {"kCache", tensor.Of(f16, 25, 4, 1, 7)}}, dim, dim},
		{"mask free", with(func(p *PagedAttention) { p.MaskType = PagedMaskFree }), nil, dim, dim},
		{"output size", plain, []pagedChange{{"output", tensor.Of(f16, 4, 4, 9)}}, none, dim},
		{"output heads", plain, []pagedChange{{"output", tensor.Of(f16, 4, 8, 8)}}, none, dim},
		{"output rank", plain, []pagedChange{{"output", tensor.Of(f16, 4, 32)}}, none, dim},
		{"razor", rope, []pagedChange{{"razorOffset", tensor.Of(f32, 4, 25)}}, none, dim},
		{"logN", logN, []pagedChange{{"logN", tensor.Of(f32, 5)}}, none, dim},
		{"heads", plain, []pagedChange{{"query", tensor.Of(f16, 4, 8, 8)}, {"output", tensor.Of(f16, 4, 8, 8)}}, none, dim},
		{"cache heads", plain, []pagedChange{{"kCache", tensor.Of(f16, 25, 4, 4, 8)}, {"vCache", tensor.Of(f16, 25, 4, 4, 8)}}, none, dim},
		{"cache heads of bnsd", bnsd, []pagedChange{{"kCache", tensor.Of(f16, 25, 4, 2, 8)}, {"vCache", tensor.Of(f16, 25, 4, 2, 8)}}, none, dim},
		{"tables", plain, []pagedChange{{"blockTables", tensor.Of(i32, 5, 6)}}, none, dim},
		{"sequences", plain, []pagedChange{{"blockTables", tensor.Of(i32, 5, 6)}, {"contextLens", tensor.Of(i32, 5)}}, none, dim},
		{"sequences by head", rope, []pagedChange{{"blockTables", tensor.Of(i32, 3, 6)}, {"contextLens", tensor.Of(i32, 3)}}, none, dim},
		{"query lens", spec, []pagedChange{{"qSeqLens", tensor.Of(i32, 5)}}, none, dim},
		{"key scales", dequant, []pagedChange{{"kDescale", tensor.Of(f32, 15)}}, none, dim},
		{"value offsets", dequant, []pagedChange{{"vOffset", tensor.Of(i32, 8)}}, none, dim},
		{"head scales", online, []pagedChange{{"vDescale", tensor.Of(f32, 2)}}, none, dim},
		{"prob scales", online, []pagedChange{{"pScale", tensor.Of(f32, 2)}}, none, dim},
		{"mask batch", mask, []pagedChange{{"mask", tensor.Of(f16, 3, 1, 24)}}, none, dim},
		{"mask heads", mask, []pagedChange{{"mask", tensor.Of(f16, 4, 2, 24)}}, none, dim},
		{"mask rank", mask, []pagedChange{{"mask", tensor.Of(f16, 24)}}, none, dim},
		{"mask rows", mask, []pagedChange{{"mask", tensor.Of(f16, 4, 4, 2, 24)}}, none, dim},
		{"mask tokens", spec, []pagedChange{{"mask", tensor.Of(f16, 9, 24)}}, none, dim},
		{"mask tokens rank", spec, []pagedChange{{"mask", tensor.Of(f16, 1, 8, 24)}}, none, dim},
		{"mask positions", specNorm, []pagedChange{{"mask", tensor.Of(f16, 3, 24, 24)}}, none, dim},
		{"query type", plain, []pagedChange{{"query", tensor.Of(i32, 4, 4, 8)}}, status.ErrInvalidTensorIniMatch, status.ErrInvalidTensorIniMatch},
		{"key type", plain, []pagedChange{{"kCache", tensor.Of(i8, 25, 4, 2, 8)}}, status.ErrInvalidTensorIniMatch, status.ErrInvalidTensorIniMatch},
		{"output type", plain, []pagedChange{{"output", tensor.Of(i32, 4, 4, 8)}}, none, status.ErrInvalidTensorIniMatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, profile := range []*operation.Profile{operation.Board910B(), operation.Native()} {
				in, out := pagedOperands(t, c.spec, c.change)
				_, err := operation.InferShape(c.spec, profile, in)
				assert.Equal(t, c.infer, status.CodeOf(err), "%s: %v", profile.Name(), err)
				err = operation.CheckSetup(c.spec, profile, in, out, nil)
				assert.Equal(t, c.setup, status.CodeOf(err), "%s: %v", profile.Name(), err)
			}
		})
	}
}

// pagedOperands makes the f16 descriptors of a case with changes.
func pagedOperands(t *testing.T, p PagedAttention, change []pagedChange) (in, out []tensor.Desc) {
	t.Helper()
	c := newPagedCase(p, tensor.Float16, 1)
	c.dk = c.dv
	c.build()
	in = c.in
	o := in[0]
	o.DType = tensor.Float16
	for _, x := range change {
		if x.port == "output" {
			o = x.desc
			continue
		}
		found := false
		for i, port := range p.Signature().In {
			if port.Name == x.port {
				in[i], found = x.desc, true
			}
		}
		require.True(t, found, x.port)
	}
	return in, []tensor.Desc{o}
}

// TestPagedLimits checks the board's limits, which the other profile does not
// have.
func TestPagedLimits(t *testing.T) {
	plain := func(heads, kvHeads int) PagedAttention {
		return PagedAttention{HeadNum: heads, KVHeadNum: kvHeads, QKScale: 1}
	}
	mla := PagedAttention{HeadNum: 16, KVHeadNum: 1, QKScale: 1, MLAVHeadSize: 512}
	for _, c := range []struct {
		name       string
		spec       PagedAttention
		dk, dv, bs int64
		ok         bool
	}{
		{"small", plain(4, 2), 8, 8, 16, true},
		{"wide values", plain(4, 2), 128, 96, 512, true},
		{"256 at 512", plain(4, 2), 256, 256, 512, true},
		{"257 at 128", plain(4, 2), 257, 64, 128, true},
		{"257 at 129", plain(4, 2), 257, 64, 129, false},
		{"576", plain(4, 2), 576, 576, 128, true},
		{"577", plain(4, 2), 577, 64, 16, false},
		{"577 values", plain(4, 2), 64, 577, 16, false},
		{"mla at 256, 16 heads", mla, 576, 512, 256, true},
		{"mla at 257, 16 heads", mla, 576, 512, 257, false},
		{"mla at 256, 8 heads", PagedAttention{HeadNum: 8, KVHeadNum: 1, QKScale: 1, MLAVHeadSize: 512}, 576, 512, 256, false},
		{"mla at 256, spec", PagedAttention{HeadNum: 16, KVHeadNum: 1, QKScale: 1, MLAVHeadSize: 512, CalcType: PagedCalcSpec}, 576, 512, 256, false},
		{"logN", PagedAttention{HeadNum: 4, KVHeadNum: 2, ScaleType: ScaleLogN}, 128, 128, 128, true},
		{"logN elements", PagedAttention{HeadNum: 4, KVHeadNum: 2, ScaleType: ScaleLogN}, 128, 128, 144, false},
		{"logN size", PagedAttention{HeadNum: 4, KVHeadNum: 2, ScaleType: ScaleLogN}, 272, 272, 16, false},
		{"logN sizes", PagedAttention{HeadNum: 4, KVHeadNum: 2, ScaleType: ScaleLogN}, 128, 64, 16, false},
		{"head sizes", PagedAttention{HeadNum: 4, KVHeadNum: 2, CompressType: PagedCompressKVHead}, 128, 96, 16, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newPagedCase(c.spec, tensor.Float16, 1)
			x.dk, x.dv, x.bs, x.columns, x.blocks = c.dk, c.dv, c.bs, 2, 2
			x.contexts = x.contexts[:2]
			if c.spec.spec() {
				x.qLens = []int64{1, 1}
			}
			x.build()
			_, err := operation.InferShape(c.spec, operation.Board910B(), x.in)
			if c.ok {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, status.ErrInvalidTensorDim)
			}
			_, err = operation.InferShape(c.spec, operation.Native(), x.in)
			require.NoError(t, err)
		})
	}
}

// Blocked caches pass the board's table and are refused, never misread.
func TestPagedRefusesBlockedCaches(t *testing.T) {
	in, out := pagedOperands(t, PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 1}, nil)
	in[1].Format, in[2].Format = tensor.FractalNZ, tensor.FractalNZ
	p := PagedAttention{HeadNum: 4, KVHeadNum: 2, QKScale: 1}
	_, err := operation.InferShape(p, operation.Board910B(), in)
	assert.ErrorIs(t, err, status.ErrInvalidTensorFormat)
	err = operation.CheckSetup(p, operation.Board910B(), in, out, nil)
	assert.ErrorIs(t, err, status.ErrInvalidTensorFormat)
	_, err = operation.InferShape(p, operation.Native(), in)
	assert.ErrorIs(t, err, status.ErrInvalidTensorIniMatch)
}

func TestPagedNames(t *testing.T) {
	assert.Equal(t, "ALIBI", PagedMaskALiBi.String())
	assert.Equal(t, "NORM_COMPRESS", PagedMaskNormCompress.String())
	assert.Equal(t, "SPEC", PagedCalcSpec.String())
	assert.Equal(t, "KVHEAD_ROPE", PagedCompressKVHeadRope.String())
	assert.Equal(t, "9", PagedMaskType(9).String())
}
